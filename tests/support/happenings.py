"""What may happen to a fleet: pushes, losses and restarts in any order, for property tests over histories.

A history is a list of (name, number, whether it is loaded at once). Names of PUSHES are files that are pushed, those of
EVENTS things done to the fleet.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from support import lostcopies
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import moved_beside
from support.settling import Settling
from support.turns import Turns
from support.widgets import binding, crd, export, schema, widget

from apiserver.model import marks
from apiserver.model.reserved import settable
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.lifecycles import INITIALIZER, TERMINATOR, without
from apiserver.storage.protocol import Delete, View
from reconciler.controllers.inactivity import Inactivity
from reconciler.loading.heads import FOLLOW, HOLD, BranchSettings
from reconciler.statusbranch.underway import UnderWay

C, D, E, F, M = (f"workspaces/root/{name}" for name in "cdefm")
Files = dict[str, str | None]
History = list[tuple[str, int, bool]]

LATER = "2026-05-05T00:00:00Z"
FIELDS = [("size", "integer"), ("size", "string"), ("colour", "string")]
BEGIN: dict[str, str] = {
    f"{A}/schema.json": schema(),
    f"{A}/export.json": export(),
    f"{B}/binding.json": binding("root:a"),
    f"{B}/w.json": widget(size=1),
    f"{C}/workspace.yaml": "",
    f"{C}/crd.json": crd(),
    f"{C}/w.json": widget(size=1),
}
MANY = [f"{B}/many/{n:02}.yaml" for n in range(14)]


def _manifest(kind: str, name: str, spec: Any = None, api: str = "tenancy.kcp.io/v1alpha1", **annotations: str) -> str:
    metadata: dict[str, Any] = {"name": name} | ({"annotations": annotations} if annotations else {})
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": metadata} | ({"spec": spec} if spec else {}))


def _typed(name: str, path: str = "root") -> str:
    return _manifest("Workspace", "d", {"type": {"name": name, "path": path}})


def _own(number: int, extends: str = "") -> str:
    """A type of a workspace's own, which may extend that of another one, or itself."""
    spec: dict[str, Any] = {"additionalWorkspaceLabels": {"own": str(number % 5)}}
    spec |= {"extend": {"with": [{"name": "own", "path": extends}]}} if extends else {}
    return _manifest("WorkspaceType", "own", spec)


def _type(number: int) -> str:
    """One that brings a binding, for good or as it says by now, and labels; or none, or extends what is not there."""
    spec: dict[str, Any] = {}
    if number % 3 == 0:
        spec["defaultAPIBindings"] = [{"path": "root:a", "export": "widgets"}]
        spec |= {"defaultAPIBindingLifecycle": "Maintain"} if number % 2 else {}
        spec["additionalWorkspaceLabels"] = {"number": str(number % 4)}
    if number % 4 == 0:
        spec["initializer"] = True
    if number % 4 == 1:
        spec["terminator"] = True
    if number % 3 == 1:
        spec["extend"] = {"with": [{"name": "lost", "path": "root"}]}
    return _manifest("WorkspaceType", "lab", spec)


def _shard(number: int) -> str | None:
    """One of two, or none, or one that takes nothing new."""
    if number % 4 == 0:
        return None
    closed = {"experimental.core.kcp.io/unschedulable": "true"} if number % 4 == 1 else {}
    found = json.loads(_manifest("Shard", f"s{number % 2}", api="core.kcp.io/v1alpha1", **closed))
    found["metadata"]["labels"] = {"region": ("eu", "us")[number // 4 % 2]}
    return json.dumps(found)


def _choosing(number: int) -> str:
    return _manifest("Workspace", f"f{number % 2}", {"location": {"selector": {"matchLabels": {"region": "eu"}}}})


def _mounting(number: int) -> str:
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "app"}
    return _manifest("Workspace", f"m{number % 2}", {"mount": {"ref": ref}} if number % 3 else None)


def _marked(number: int) -> str:
    said = {"core.kcp.io/inactive": ("true", "false")[number // 6 % 2]} if number % 3 else {}
    most = {"core.kcp.io/max-total-objects": str(1000 + number)} if number % 5 == 0 else {}
    needed = {"authorization.kcp.io/required-groups": f"devs;ops{number % 3}"} if number % 4 == 1 else {}
    name = "ab"[number % 2]
    return _manifest("Workspace", name, **said, **most, **needed) if said or most or needed else ""


def _field(number: int) -> str:
    return FIELDS[number % 3][0]


PUSHES: dict[str, Callable[[int], Files]] = {
    "change": lambda n: {f"{A}/app.yaml": configmap(n=str(n)), "workspaces/root/app.yaml": configmap(n=str(n))},
    "rename": lambda n: {
        f"{B}/app.yaml": None,
        f"{B}/app{n % 3}.yaml": configmap(),
        f"{B}/app{(n + 1) % 3}.yaml": None,
    },
    "add many": lambda n: {path: configmap(f"m{path[-7:-5]}", n=str(n)) for path in MANY},
    "remove many": lambda n: dict.fromkeys(MANY[n % 3 :]),
    "space": lambda n: {
        f"{B}/ns.yaml": _manifest("Namespace", "shop", api="v1"),
        f"{B}/in.yaml": configmap("in", "shop", n=str(n)),
    },
    "remove space": lambda n: {f"{B}/ns.yaml": None, **({f"{B}/in.yaml": None} if n % 2 else {})},
    "protect": lambda n: {f"{B}/p.yaml": _protected(n)},
    "remove protected": lambda n: {f"{B}/p.yaml": None},
    "break": lambda n: {f"{(A, B, C)[n % 3]}/bad.yaml": f"kind: [{n}"},
    "mend": lambda n: {f"{(A, B, C)[n % 3]}/bad.yaml": None},
    "provide": lambda n: {
        f"{A}/schema.json": schema(f"v{n % 4}", *FIELDS[n % 3]),
        f"{A}/export.json": export(f"v{n % 4}"),
    },
    "provide beside": lambda n: {f"{A}/schema{n % 4}.json": schema(f"w{n % 4}", *FIELDS[n % 3])},
    "turn": lambda n: {
        f"{A}/schema{n % 4}.json": schema(f"w{n % 4}", *FIELDS[n % 3]),
        f"{A}/export.json": export(f"w{n % 4}", allow=f"v1->w{n % 4}" if n % 2 else ""),
    },
    "widen": lambda n: {
        f"{A}/schema{n % 4}.json": schema(f"x{n % 12}", *FIELDS[n % 2], **_further(n)),
        f"{A}/export.json": export(f"x{n % 12}"),
    },
    "withdraw": lambda n: {f"{A}/export.json": None, **({f"{A}/schema.json": None} if n % 2 else {})},
    "bind": lambda n: {f"{B}/binding.json": binding("root:a", "widgets" if n % 2 else "renamed")},
    "bind twice": lambda n: {f"{B}/binding2.json": binding("root:a", f"second{n % 2}")},
    "unbind": lambda n: {f"{B}/binding.json": None, **({f"{B}/w.json": None} if n % 2 else {})},
    "use": lambda n: {f"{B}/w.json": widget(**{_field(n): n if n % 2 else str(n)})},
    "define": lambda n: {f"{(B, C)[n % 2]}/crd.json": crd("v1", *FIELDS[n % 3])},
    "define no more": lambda n: {f"{(B, C)[n % 2]}/crd.json": None, **({f"{C}/w.json": None} if n % 3 else {})},
    "use defined": lambda n: {f"{C}/w.json": widget(**{_field(n): n if n % 2 else str(n)})},
    "take each other's": lambda n: {
        f"{B}/schema.json": schema(f"b{n % 2}"),
        f"{B}/export.json": export(f"b{n % 2}"),
        f"{A}/binding.json": binding("root:b"),
    },
    "bind a child's": lambda n: {
        f"{A}/kid/workspace.yaml": "",
        f"{A}/kid/schema.json": schema(f"k{n % 2}"),
        f"{A}/kid/export.json": export(f"k{n % 2}"),
        f"{A}/kids.json": binding("root:a:kid", "kids"),
    },
    "type": lambda n: {"workspaces/root/type.yaml": _type(n)},
    "type no more": lambda n: {"workspaces/root/type.yaml": None},
    "of the type": lambda n: {
        f"{D}/workspace.yaml": _typed("lab" if n % 3 else "universal"),
        f"{D}/app.yaml": configmap(n=str(n)),
    },
    "of no type": lambda n: {f"{D}/workspace.yaml": ""},
    "shard": lambda n: {"workspaces/root/shard.yaml": _shard(n)},
    "choose": lambda n: {f"{F}{n % 2}/workspace.yaml": _choosing(n), f"{F}{n % 2}/app.yaml": configmap(n=str(n))},
    "choose no more": lambda n: {f"{F}{n % 2}": None},
    "mount": lambda n: {f"{M}{n % 2}/workspace.yaml": _mounting(n), f"{M}{n % 2}/app.yaml": None},
    "mount no more": lambda n: {f"{M}{n % 2}": None},
    "fill a mount": lambda n: {f"{M}{n % 2}/app.yaml": configmap(n=str(n))},
    "say inactive": lambda n: {f"{(A, B)[n % 2]}/workspace.yaml": _marked(n)},
    "remove": lambda n: {(A, B, C, D)[n % 4]: None},
    "leave behind": lambda n: {f"{(A, B, C, D)[n % 4]}/workspace.yaml": None},
    "put back": lambda n: {f"{place}/workspace.yaml": "" for place in (A, B, C)[: n % 3 + 1]},
    "put all back": lambda n: {**BEGIN, **{f"{p}/workspace.yaml": "" for p in (A, B)}, f"{A}/app.yaml": configmap()},
    "move": lambda n: {
        C: None,
        f"workspaces/root/{n % 2}/c/workspace.yaml": "",
        f"workspaces/root/{n % 2}/c/x.yaml": configmap("x"),
    },
    "open root": lambda n: {
        "treeplane.yaml": f"{TREEPLANE_YAML}spec: {{rootAccess: {('None', 'Authenticated')[n % 2]}}}\n"
    },
    "limits": lambda n: {"treeplane.yaml": TREEPLANE_YAML + _limits(n)},
    "break the fleet": lambda n: {"treeplane.yaml": f"kind: [{n}"},
    "ignore": lambda n: {"workspaces/root/.treeplaneignore": "/c/\n" if n % 2 else None},
    "run": lambda n: lostcopies.FILES,
    "relabel": lambda n: {lostcopies.SPACE: lostcopies.space("web" if n % 3 else "other")},
    "place": lambda n: {lostcopies.PLACE: (None, lostcopies.place(), lostcopies.place(region="us"))[n % 3]},
    "claim": lambda n: {lostcopies.CLAIM: (None, lostcopies.claim(), lostcopies.claim(protected="false"))[n % 3]},
    "nothing": lambda n: {"README.md": str(n)},
    "types of two": lambda n: {
        f"{A}/own.json": _own(n, f"root:{'ab'[n // 3 % 2]}" if n % 3 else ""),
        f"{B}/own.json": _own(n),
        f"{D}/workspace.yaml": _typed("own", "root:b" if n % 4 else "root:a"),
    },
    "types of two no more": lambda n: {f"{(A, B)[n % 2]}/own.json": None},
    "types in a circle": lambda n: {f"{A}/own.json": _own(n, "root:b"), f"{B}/own.json": _own(n, "root:a")},
    "of a type that is not there": lambda n: {f"{D}/workspace.yaml": _typed("nope", "root:b")},
}
_STRIDE = 31
"""From one number's push to the next one's, where a number means one of all."""
assert math.gcd(len(PUSHES), _STRIDE * 2 * 3 * 7) == 1, (
    "else a push comes with no number, or never with some remainders"
)


def _any_push(number: int) -> Files:
    return [*PUSHES.values()][_STRIDE * number % len(PUSHES)](number)


def _protected(number: int) -> str:
    said = ("true", "false", "")[number % 3]
    text = configmap("p", n=str(number))
    return text.replace("{name:", f"{{annotations: {{treeplane.dev/protected: {said!r}}}, name:") if said else text


def _limits(number: int) -> str:
    limits = ["maxDeletedObjects: 2", "maxDeletedShare: 100", "maxDeletedWorkspaces: 0", "maxDeletedObjects: 1000"]
    return f"spec: {{safety: {{{limits[number % 4]}, rewrites: {(FOLLOW, HOLD)[number // 4 % 2]}}}}}\n"


def _further(number: int) -> dict[str, Any]:
    """A field that makes no difference to Widgets, one that does, or none."""
    return [{"more": {"type": "string"}}, {"more": {"type": "string", "default": "x"}}, {}][number % 3]


def _initialized(obj: Any) -> None:
    for name in INITIALIZER.left(obj):
        obj.update(without(obj, INITIALIZER, name, LATER))


def _terminated(obj: Any) -> None:
    for name in TERMINATOR.left(obj):
        obj.update(without(obj, TERMINATOR, name, LATER))


def much(number: int) -> Files:
    """A commit that concerns many workspaces: one comes, one that it takes something of changes, another goes."""
    return {
        f"{A}/much.yaml": configmap("much", n=str(number)),
        f"{E}{number % 3}/workspace.yaml": "",
        f"{E}{number % 3}/app.yaml": configmap(n=str(number)),
        f"{E}{number % 3}/below/workspace.yaml": "",
        f"{E}{(number + 1) % 3}": None,
        f"{B}/much.yaml": configmap("much", n=str(number)),
        **_any_push(number),
    }


EVENTS = (
    "allow",
    "allow rewrite",
    "rewrite",
    "back",
    "restart",
    "status",
    "finalizer",
    "let go",
    "decide",
    "mark",
    "initialize",
    "terminate",
    "publish",
    "publish beside a load",
    "record in a load",
    "hold the branch",
    "die",
    "record and die",
    "relocate",
    "pin",
)


OF_ONE = ("status", "finalizer", "let go", "decide", "mark", "initialize", "terminate")
"""What controllers of one server do."""


class Killed(BaseException):
    """No exception handler sees a kill -9 either."""


@dataclass
class Happening:
    """A fleet to which things happen. `touched`: controllers wrote to it since it was last recorded; `left`: its branch
    left a head since then, which no recovery can know of. `also`: what is to be loaded whenever it is."""

    fleet: LoadedFleet
    rewrites: str = FOLLOW
    touched: bool = False
    left: bool = False
    also: Callable[[], Any] = lambda: None
    ever_touched: bool = False
    commits: list[str] = field(default_factory=list)
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.turns = Turns(self.fleet)

    def begin(self) -> None:
        self.fleet.begin(BEGIN)
        assert self.fleet.held() == {}
        self.commits.append(self.fleet.repo.head)
        self.tidy()
        self.fleet.publish()
        self.turns.look()

    def tidy(self) -> None:
        """Controllers do what there is to do about what ends, and the loader what they ask it for."""
        Settling()(self.fleet)

    def happen(self, name: str, number: int, *, load: bool = True) -> None:
        """`load` False: it is pushed, and loaded with what comes next."""
        if name in PUSHES:
            self.push(PUSHES[name](number))
        else:
            getattr(self, f"_{name.replace(' ', '_')}")(number)
        if load:
            self.load()

    def push(self, files: Files, message: str = "Change", parent: str | None = None) -> None:
        self.commits.append(self.fleet.repo.commit(files, message, parent))
        self.turns.led.append(self.commits[-1])

    def load(self) -> None:
        self.fleet.load()
        self.turns.look()
        self.also()

    def die(self, writes: int | Callable[[], bool], before: Callable[[], Any] = lambda: None) -> None:
        """The server loads, and is killed after so many transactions, or when something is so; another one stands
        ready. `before`: done then."""

        def killed() -> None:
            before()
            raise Killed

        with suppress(Killed), self.after(writes, killed):
            self.fleet.load()
        self.fleet.loader = self.fleet.new_loader(BranchSettings(rewrites=self.rewrites))

    @contextmanager
    def after(self, writes: int | Callable[[], bool], happens: Callable[[], Any]) -> Iterator[None]:
        """Something happens once, after so many transactions or when something is so. All are in the store then."""
        store, under_way, happened = self.fleet.store, list[Any](), list[bool]()

        def is_time() -> bool:
            if isinstance(writes, int):
                return len(under_way) == writes
            wait(under_way)
            return writes()

        def watched(written: Callable[..., Any]) -> Callable[..., Any]:
            def write(*ops: Any) -> Any:
                if not happened and is_time():
                    happened.append(True)
                    wait(under_way)
                    happens()
                under_way.append(written(*ops))
                return under_way[-1]

            return write

        before = store.write, store.fill
        store.write, store.fill = watched(store.write), watched(store.fill)  # type: ignore[method-assign]
        try:
            yield
        finally:
            wait(under_way)  # nothing of a dead process is written later
            store.write, store.fill = before  # type: ignore[method-assign]

    # -- events

    def _allow(self, number: int) -> None:
        said = " ".join(text for found in self.fleet.held().values() for text in found)
        hashes = sorted(set(re.findall(r"Allow-Delete: ([0-9a-f]{40})", said)))
        chosen = hashes if number % 2 else hashes[:1]
        self.push({}, f"Allow deletion\n\nAllow-Delete: {' '.join(chosen)}\n" if chosen else "Nothing to allow")

    def _allow_rewrite(self, number: int) -> None:
        self.push({}, f"Allow the rewrite\n\nAllow-Rewrite: {self.fleet.fleet().commit}\n")

    def _rewrite(self, number: int) -> None:
        self.left = True
        parent = self.commits[-min(len(self.commits), number % 4 + 1)]
        self.turns.led.append(parent)  # the branch may have been back, and passes that then
        self.push({f"{A}/rewritten.yaml": configmap("rewritten", n=str(number))}, parent=parent)

    def _back(self, number: int) -> None:
        self.left = True
        self.fleet.repo.reset(self.commits[-min(len(self.commits), number % 3 + 1)])
        self.turns.led.append(self.fleet.repo.head)

    def _hold_the_branch(self, number: int) -> None:
        self.rewrites = (FOLLOW, HOLD)[number % 2]
        self._restart(number)

    def _restart(self, number: int) -> None:
        self.fleet.loader = self.fleet.new_loader(BranchSettings(rewrites=self.rewrites))
        self.load()
        self.fleet.recheck(self.fleet.paths())

    def _die(self, number: int) -> None:
        files = PUSHES["use defined"](number) if number % 2 else _any_push(number)
        self.push({f"{A}/died.yaml": configmap("died", n=str(number)), **files})
        self.die(number % 7)

    def _status(self, number: int) -> None:
        self._touch(number, lambda obj: obj.update(status={"seen": number}))

    def _finalizer(self, number: int) -> None:
        self._touch(
            number, lambda obj: obj["metadata"].update(finalizers=[f"example.io/{number}"] if number % 3 else [])
        )

    def _let_go(self, number: int) -> None:
        """Whoever set a finalizer takes it away of what is being deleted, terminators are done, and what waited for
        that goes on."""
        self._terminate(number)
        settling = Settling()
        settling(self.fleet)  # controllers are at work when it goes
        waiting = [key for key, value in self.fleet.everything().items() if b'"example.io/' in value]
        gone = [key for key in waiting if b'"deletionTimestamp"' in self.fleet.everything()[key]]
        if gone:
            self.fleet.store.write(*map(Delete, gone)).result()
        settling(self.fleet)
        self.touched = self.ever_touched = self.turns.runtime = True

    def _relocate(self, number: int) -> None:
        """A workspace moves, or moves back."""
        files = moved_beside(self.fleet, number)
        if files:
            self.push(files)

    def _pin(self, number: int) -> None:
        """A workspace is to be served as some commit has it, which may be none that it can be served as."""
        commit = self.commits[-1 - number // 4 % len(self.commits)]
        place = ("workspaces/root", A, B, C)[number % 4]
        self.push(
            {f"{place}/workspace.yaml": _manifest("Workspace", place.rpartition("/")[2], {"serve": {"commit": commit}})}
        )

    def _decide(self, number: int) -> None:
        """Where a namespace runs from then on."""
        if lostcopies.is_placed(self.fleet):
            lostcopies.decided(self.fleet)
            self.touched = self.ever_touched = True

    def _mark(self, number: int) -> None:
        """An administrator says through the API that a workspace is inactive, or not any more."""
        store, path = self.fleet.store, f"root:{'ab'[number % 2]}"
        record = tree.workspace_at(store, path)
        workspace = self.fleet.find("root", WORKSPACES, path[-1], "")
        said = settable(workspace["metadata"]) if workspace is not None else {}
        if record is None or not record.served or record.leaves or marks.INACTIVE in said:
            return
        key = self.fleet.key(path, LOGICAL_CLUSTERS, "cluster", "")
        value = {marks.INACTIVE: "true"} if number % 3 else {}

        def change(obj: Any) -> None:
            annotations = obj["metadata"]["annotations"]
            annotations.pop(marks.INACTIVE, None)
            annotations.update(value)

        self.fleet.update(key, change)
        written = Inactivity(store).reconcile(key)
        if written is not None:
            written.result()
        self.touched = self.ever_touched = True

    def _initialize(self, number: int) -> None:
        """A program is done with all workspaces that wait for it."""
        waiting = [key for key, value in self.fleet.everything().items() if b'"initializers":["' in value]
        for key in waiting:
            if key.resource in (WORKSPACES, LOGICAL_CLUSTERS):
                self.fleet.update(key, _initialized)
                self.touched = self.ever_touched = self.turns.runtime = True

    def _terminate(self, number: int) -> None:
        """A program is done with all workspaces that are taken away, and what waited for that goes on."""
        for key, value in self.fleet.everything().items():
            if key.resource in (WORKSPACES, LOGICAL_CLUSTERS) and b'"phase":"Terminating"' in value:
                self.fleet.update(key, _terminated)
        self.tidy()
        self.touched = self.ever_touched = self.turns.runtime = True

    def _publish(self, number: int) -> None:
        self.fleet.publish()
        self.touched = False
        self.left &= str(self.fleet.fleet().commit) != self.fleet.repo.head  # it may have left one that is not loaded

    def _publish_beside_a_load(self, number: int) -> None:
        """What is recorded is of one moment, whatever is loaded while it is rendered."""
        names = [*PUSHES]
        self.push(PUSHES[names[number % len(names)]](number))
        store, opened = self.fleet.store, self.fleet.store.view

        @contextmanager
        def view() -> Iterator[View]:
            store.view = opened  # type: ignore[method-assign]  # a load takes views of its own
            with opened() as found:
                self.load()
                yield found

        store.view = view  # type: ignore[method-assign]
        try:
            self.fleet.publish()
        finally:
            store.view = opened  # type: ignore[method-assign]
        self.touched = False

    def _record_in_a_load(self, number: int) -> None:
        """What is recorded while commits are on their way, by a server that goes on."""
        self.push(much(number))
        with self.after(number % 9, lambda: self.record(number)):
            self.load()

    def _record_and_die(self, number: int) -> None:
        self.push(much(number))
        self.die(number % 9, lambda: self.record(number))

    def record(self, number: int = 0) -> None:
        """In the middle of a load. `number` odd: by a writer that leaves out what can be made of the commit."""
        under_way = UnderWay()
        with under_way if number % 2 else nullcontext():
            self.fleet.publish(self.fleet.writer(under_way))
        self.touched = False

    def _touch(self, number: int, change: Callable[[Any], Any]) -> None:
        """What a controller writes."""
        places = [("root:b", "widgets.example.io"), ("root:c", "widgets.example.io"), ("root:a", "configmaps")]
        for path, resource in places if number % 2 else places[1:]:
            record = tree.workspace_at(self.fleet.store, path)
            if record is not None and record.served:
                key = self.fleet.key(path, resource, "w" if "." in resource else "app", "default")
                if self.fleet.store.get(key) is not None:
                    self.fleet.update(key, change)
                    metadata = self.fleet.get(path, resource, key.name)["metadata"]
                    if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
                        self.fleet.store.write(Delete(key)).result()  # it goes with its last one
                    self.touched = self.ever_touched = True
                    return

"""Moves among other commits, losses and restarts: over generated histories a logical cluster stays its workspace's, and
the running server, a recovery and an observer agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import LoadedFleet, configmap
from support.moving import HEAD, Files, moving
from support.recoveries import assert_same
from support.widgets import binding, export, schema, widget

from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown

ROOT = "workspaces/root"
NOBODY = "00000000-0000-5000-8000-000000000000"
WORDS = (
    *("move", "move", "move", "rename", "revert", "change", "break", "mend", "kid", "remove", "allow", "move wrongly"),
    *("finalizer", "publish", "restart", "die", "observe", "move and change", "let go"),
    *("export", "bind", "bind", "use", "withdraw", "type", "of the type"),
)
HISTORIES = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 47), st.booleans()), min_size=1, max_size=12)
History = list[tuple[str, int, bool]]


def typed(number: int, path: str) -> dict[str, str]:
    """A type that labels its workspaces and brings them a binding, or what it is to make of a workspace."""
    spec = {"additionalWorkspaceLabels": {"n": str(number % 3)}}
    if number % 2:
        spec |= {"defaultAPIBindings": [{"path": path, "export": "widgets"}]}  # type: ignore[dict-item]
    head = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "lab"}}
    return {"type.json": json.dumps({**head, "spec": spec})}


SHARING: dict[str, Callable[[int, str], dict[str, Any]]] = {
    "export": lambda n, _: {"schema.json": schema(f"v{n % 2}"), "export.json": export(f"v{n % 2}")},
    "withdraw": lambda n, _: {"export.json": None} | ({"schema.json": None} if n % 2 else {}),
    "bind": lambda _, path: {"binding.json": binding(path)},
    "use": lambda n, _: {"w.json": widget(size=n)},
    "type": typed,
    "of the type": lambda n, path: {
        f"typed{n % 2}/workspace.yaml": f"{HEAD}spec: {{type: {{name: lab, path: '{path}'}}}}\n"
    },
}


class Moved:
    """A fleet, and what happens to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.fleet = LoadedFleet(folder / "fleet")
        self.made = [self.fleet]
        self.observer: tuple[LoadedFleet, Shown] | None = None
        self.clusters: dict[str, str] = {}
        shop = {f"{ROOT}/a/schema.json": schema(), f"{ROOT}/a/export.json": export()}
        shop |= {f"{ROOT}/b/binding.json": binding("root:a"), f"{ROOT}/b/w.json": widget(size=1)}
        self.fleet.begin({f"{ROOT}/a/x/workspace.yaml": "", f"{ROOT}/a/x/app.yaml": configmap()} | shop)

    def another(self) -> LoadedFleet:
        name = f"n{len(self.made)}"
        self.made.append(LoadedFleet(self.folder / name, repo=self.fleet.repo, keys=self.fleet.keys))
        return self.made[-1]

    def close(self) -> None:
        for each in self.made:
            each.close()

    # -- where they are

    def files(self) -> dict[str, str]:
        return self.fleet.repo.files(self.fleet.repo.head)

    def directories(self) -> list[str]:
        """Of all workspaces but root in the head."""
        return sorted(name.rpartition("/")[0] for name in self.files() if name.endswith("/workspace.yaml"))

    def choose(self, number: int) -> str:
        found = self.directories()
        return found[number % len(found)] if found else f"{ROOT}/a"

    def path(self, place: str) -> str:
        """Of a workspace that is there, mostly."""
        found = self.directories()
        there = found[len(place) % len(found)] if found else place
        return there.removeprefix("workspaces/").replace("/", ":")

    def place(self, number: int) -> str:
        above = [ROOT, *self.directories()]
        return f"{above[number // 3 % len(above)]}/{'xyz'[number % 3]}"

    def uid(self, directory: str) -> str:
        path = directory.removeprefix("workspaces/").replace("/", ":")
        parent, _, name = path.rpartition(":")
        if tree.workspace_at(self.fleet.store, parent) is None:
            return NOBODY
        found = self.fleet.find(parent, WORKSPACES, name, "")
        return str(found["metadata"]["uid"]) if found is not None else NOBODY

    # -- what happens

    def happen(self, word: str, number: int, *, load: bool) -> None:
        fleet = self.fleet
        if word == "publish":
            fleet.publish()
        elif word == "restart":
            fleet.loader = fleet.new_loader()
        elif word == "die":
            self.die(number % 9)
        elif word == "observe":
            self.observe()
        elif word in ("finalizer", "let go"):
            self.mark(number, ["example.io/wait"] if word == "finalizer" else [])
        elif word == "allow":
            fleet.load()
            with suppress(AssertionError):
                fleet.allow()
        else:
            files = self.pushed(word, number)
            if files:
                fleet.repo.commit(files)
        if load:
            fleet.load()
            self.look()

    def pushed(self, word: str, number: int) -> Files:
        at, new = self.choose(number), self.place(number // 2)
        if word in ("move", "rename", "move wrongly", "move and change"):
            if (new + "/").startswith(f"{at}/") or new in self.directories():
                return {}
            uid = {"rename": "", "move wrongly": NOBODY}.get(word, self.uid(at))
            more = {f"{new}/more.yaml": configmap("more", n=str(number))} if word == "move and change" else {}
            return moving(self.fleet, at, new, uid) | more
        if word == "revert":
            back = self.fleet.repo.files(self.fleet.repo.commits[-1 - number % min(3, len(self.fleet.repo.commits))])
            return {f"{ROOT}/{name}": None for name in "abxyz"} | back
        if word == "remove":
            return {at: None}
        if word == "kid":
            return (
                {f"{new}/workspace.yaml": "", f"{new}/app.yaml": configmap()} if new not in self.directories() else {}
            )
        if word in SHARING:
            return {f"{at}/{name}": text for name, text in SHARING[word](number, self.path(new)).items()}
        text = {"break": "broken: [\n", "mend": configmap()}.get(word, configmap(n=str(number)))
        return {f"{at}/app.yaml": text}

    def mark(self, number: int, finalizers: list[str]) -> None:
        found = [record.key for record in self.fleet.store.scan("configmaps").records if record.key.name == "app"]
        if found:
            key = found[number % len(found)]
            self.fleet.update(key, lambda obj: obj["metadata"].update(finalizers=finalizers))

    def die(self, writes: int) -> None:
        """A load that is cut off."""
        fleet, write, left = self.fleet, self.fleet.store.write, [writes]

        def dying(*ops: Any) -> Any:
            if not left[0]:
                raise OSError("killed")
            left[0] -= 1
            return write(*ops)

        fleet.store.write = dying  # type: ignore[method-assign]
        with suppress(OSError):
            fleet.load()
        fleet.store.write = write  # type: ignore[method-assign]
        fleet.loader = fleet.new_loader()

    def observe(self) -> None:
        self.fleet.publish()
        if self.observer is None:
            other = self.another()
            new = lambda store: Loader(  # noqa: E731
                store, other.mirror.repositories, Identities(other.keys / "identities"), other.secrets.of
            )
            self.observer = other, Shown(other.store, other.mirror.repository, new)
            recorded = other.recorded()
            assert recorded is not None
            self.observer[1].begin(recorded, "them/1")
        else:
            recorded = self.observer[0].recorded()
            assert recorded is not None
            self.observer[1].follow(recorded, "them/1")

    def look(self) -> None:
        """Who has a UID has the logical cluster that it had, and every row leads to one that leads back."""
        now = {str(o["metadata"]["uid"]): str(o["spec"]["cluster"]) for o in self.workspaces()}
        assert len(set(now.values())) == len(now)
        assert all(now[uid] == cluster for uid, cluster in self.clusters.items() if uid in now)
        self.clusters |= now
        for record in self.fleet.records():
            assert tree.workspace_of(self.fleet.store, record.cluster) == record
            assert record.path == "root" or tree.workspace_at(self.fleet.store, record.parent) is not None
        self.fleet.listed()

    def is_lost_in_part(self) -> bool:
        """Whether something that never was served stays with what it stands in: a recovery has other words for it."""
        kept = [f"{path}:" for path in self.fleet.fleet().kept]
        return any(not r.served and f"{r.path}:".startswith(top) for r in self.fleet.records() for top in kept)

    def workspaces(self) -> Iterator[dict[str, Any]]:
        yield from (orjson.loads(record.value) for record in self.fleet.store.scan(WORKSPACES).records)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
@example(history=[("move", 0, True), ("publish", 0, False), ("revert", 1, True)])
@example(history=[("move", 4, False), ("observe", 0, False), ("move", 0, False)])
@example(history=[("publish", 0, False), ("move", 0, False), ("die", 2, False), ("observe", 0, False)])
def test_who_moves_stays_who_he_is_whatever_else_happens(
    tmp_path_factory: pytest.TempPathFactory, history: History
) -> None:
    happening = Moved(tmp_path_factory.mktemp("moves"))
    try:
        for word, number, load in history:
            happening.happen(word, number, load=load)
        old = happening.fleet
        old.load()
        happening.look()
        happening.observe()
        new = happening.another()
        new.load(new.recorded())
        if happening.is_lost_in_part():
            return
        assert_same(new, old)
        assert new.writer().flush() is None
        assert happening.observer is not None
        happening.observe()
        assert_same(happening.observer[0], old)
        happening.another().load()
    finally:
        happening.close()

"""Pushes of many hands, over generated histories: nobody changes what is not his, nothing is taken of another workspace
but by the word of somebody who may take it, the running server, one that is killed between two writes and a recovery
agree, and it makes no difference whether commits overtake each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import configmap
from support.moving import HEAD, moving, uid_of
from support.offering import OFFERED, of_type
from support.ownedfleet import ADMIN, OWNERS_YAML, OwnedFleet, granting, pushers
from support.recoveries import assert_same
from support.widgets import binding

from apiserver.auth.pushing import may_push
from apiserver.auth.user import AUTHENTICATED, User
from apiserver.model import paths
from apiserver.model.commits import own
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, EXPORTS, TYPES
from apiserver.registry import tree
from apiserver.registry.reliance import Named
from reconciler.loading.owners import PushRights
from reconciler.loading.pauses import Pauses
from reconciler.loading.vouching import Voucher
from reconciler.plan.pushedby import PUSH, PushedBy
from reconciler.plan.trespasses import Trespasses

R = "workspaces/root"
PEOPLE = [User(name, (AUTHENTICATED,)) for name in ("alice", "bob", "carol", "dave")]
BEGIN = {
    **OFFERED,
    f"{R}/a/x/workspace.yaml": "",
    f"{R}/a/x/app.yaml": configmap(),
    f"{R}/a/x/pushers.yaml": pushers("dave"),
    f"{R}/g/c/workspace.yaml": "",
    f"{R}/g/c/app.yaml": configmap(),
}
PLACES = [R, f"{R}/a", f"{R}/a/x", f"{R}/b", f"{R}/g", f"{R}/g/c", f"{R}/a/new", f"{R}/new", f"{R}/b/new"]
PLAIN = ("configmaps", "clusterroles.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io")
AT_HOME = ((0, f"{R}/a"), (0, f"{R}/a/x"), (0, f"{R}/a/new"), (1, f"{R}/b"), (1, f"{R}/b/new"), (3, f"{R}/a/x"))
"""Of whom (PEOPLE) some places are."""
TAKING = ("take", "take", "take", "grant", "of type", "of type")
QUIET = ("rights", "remove", "break", "app", "ignore", "show", "grant")
EDITS = (
    *("app", "app", "app", "more", "rights", "rights", "mark", "mark", "unmark", "remove", "remove", "ignore", "show"),
    *("settings", "readme", "move", "move", "back", "break"),
    *TAKING,
)


def edits(*words: str) -> Any:
    return st.tuples(st.sampled_from(words), st.integers(0, len(PLACES) - 1), st.integers(0, 5))


EDIT = edits(*EDITS)


def histories(edit: Any, *more: Any) -> Any:
    pushes = st.tuples(st.just("push"), st.integers(0, 4), st.lists(edit, min_size=1, max_size=3))
    step = st.one_of(
        *(pushes, pushes, pushes),
        st.tuples(st.just("allow"), st.integers(0, 4), st.integers(0, 7)),
        st.tuples(st.just("allow all"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("publish"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
        st.tuples(st.just("die"), st.integers(1, 6), st.lists(edit, min_size=1, max_size=3)),
        *more,
    )
    return st.lists(step, min_size=1, max_size=9)


HISTORY = st.one_of(
    histories(EDIT),
    histories(edits(*(set(EDITS) - {"move"})), st.tuples(st.just("reset"), st.integers(0, 7), st.just(0))),
)
"""A branch that goes back and moves in one history are test_move_histories'."""
AT_HOME_OR_NOT = st.one_of(
    st.tuples(st.just("take at home"), st.sampled_from(range(len(AT_HOME))), st.sampled_from(range(8))),
    st.tuples(st.just("push"), st.integers(0, 4), st.lists(edits(*TAKING, *QUIET), min_size=1, max_size=3)),
    st.tuples(st.just("allow"), st.integers(0, 4), st.integers(0, 7)),
    st.tuples(st.sampled_from(["publish", "restart"]), st.just(0), st.just(0)),
)


class Hands:
    """A fleet that many push to, and what each of their pushes may have changed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.others = folder, list[OwnedFleet]()
        self.vouched = set[tuple[str, str]]()
        """What somebody who might said that it is to be taken: the object's name, and of which workspace."""
        self.fleet = OwnedFleet(folder / "fleet")
        self.fleet.begin(BEGIN)
        self.fleet.publish()

    def close(self) -> None:
        for each in (self.fleet, *self.others):
            each.close()

    def recovered(self) -> OwnedFleet:
        self.others.append(OwnedFleet(self.folder / f"n{len(self.others)}", self.fleet))
        self.others[-1].load(self.others[-1].recorded())
        return self.others[-1]

    def user(self, number: int) -> User:
        return [*PEOPLE, ADMIN][number]

    def step(self, name: str, number: int, more: Any) -> None:
        match name:
            case "push":
                self.checked(self.user(number), self.files(more))
            case "take at home":
                user, place = AT_HOME[number]
                self.checked(self.user(user), self.edit(("take", "take", "of type", "break")[more % 4], place, more))
            case "allow":
                commit = self.fleet.repo.commits[more % len(self.fleet.repo.commits)]
                self.vouch(self.user(number), taken(self.fleet.repo.files(commit)))
                self.checked(self.user(number), {}, f"Allow\n\nAllow-Push: {commit}\n")
            case "allow all":
                errors = " ".join(error for record in self.fleet.records() for error in record.errors)
                said = {word.strip("'") for word in errors.split() if len(word.strip("'")) == 40}
                if said:
                    self.checked(self.user(number), {}, f"Allow\n\nAllow-Delete: {' '.join(sorted(said))}\n")
            case "reset":
                commits = self.fleet.repo.repo.first_parents(None, self.fleet.repo.head) or []
                self.fleet.repo.reset(commits[-1 - number % len(commits)])
                self.fleet.load()
            case "publish":
                self.fleet.publish()
            case "restart":
                self.fleet.loader = self.fleet.new_loader()
                self.fleet.load()
            case "die":
                self.die(number, self.files(more))

    def files(self, edits: list[tuple[str, int, int]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for what, place, number in edits:
            out |= self.edit(what, PLACES[place], number)
        return {name: text for name, text in out.items() if not any(name.startswith(f"{other}/") for other in out)}

    def edit(self, what: str, place: str, number: int) -> dict[str, Any]:
        match what:
            case "app" | "more":
                return {f"{place}/{what}.yaml": configmap(what, a=f"{number}")}
            case "rights":
                return {f"{place}/pushers.yaml": pushers(*{PEOPLE[n % 4].name for n in (number, number // 2)})}
            case "mark":
                text = f"{HEAD}metadata: {{labels: {{n: '{number}'}}}}\n"
                return {f"{place}/workspace.yaml": text} if place != R else {}
            case "unmark":
                return {f"{place}/workspace.yaml": None}
            case "remove":
                return {place: None} if place != R else {}
            case "ignore":
                return {f"{place}/.treeplaneignore": ("x/\n", "app.yaml\n", "new/\n", "c/\n", "b/\n", "a/\n")[number]}
            case "show":
                return {f"{place}/.treeplaneignore": None}
            case "settings":
                return {"treeplane.yaml": OWNERS_YAML.replace("true", ("true", "false")[number % 2])}
            case "readme":
                return {"README.md": f"{number}"}
            case "take":
                provider = ("root:a", "root:b", "root:b")[number % 3]
                return {f"{place}/take.yaml": binding(provider, f"t{PLACES.index(place)}")}
            case "grant":
                people = PEOPLE[number % 4].name
                rights = granting("bind", EXPORTS, people), granting("use", TYPES, people, name="users")
                return {f"{place}/grant.yaml": "---\n".join(rights)}
            case "of type":
                return (
                    {f"{place}/workspace.yaml": of_type("gold", ("", "root:b")[number % 2])}
                    if place not in (R, f"{R}/g")
                    else {}
                )
            case "break":
                return {f"{place}/app.yaml": "kind: ["}
            case "move":
                old, new = [(f"{R}/a/x", f"{R}/b/x"), (f"{R}/b", f"{R}/a/b"), (f"{R}/g/c", f"{R}/a/c")][number % 3]
                with suppress(AssertionError):
                    uid = uid_of(self.fleet, old.removeprefix("workspaces/").replace("/g/", "/").replace("/", ":"))
                    return dict(moving(self.fleet, old, new, uid))
                return {}
            case _:
                commits = self.fleet.repo.commits
                return dict(self.fleet.repo.files(commits[number % len(commits)]))

    # -- what a push may change

    def checked(self, user: User, files: dict[str, Any], message: str = "Change") -> None:
        fleet, said = self.fleet, taken(self.within(files) | files)
        self.vouch(user, said)
        if not fleet.fleet().error and fleet.fleet().commit == own(fleet.repo.head):
            rights, before = self.rights(user), self.content()
            let_go = self.waiting() if not files else set()
            owners = "true" in fleet.repo.files(fleet.repo.head)["treeplane.yaml"]
            fleet.push(user, files, message)
            if owners and not user.is_master:
                self.check(rights, before, let_go)
        else:
            fleet.push(user, files, message)
        self.vouch(user, said)  # of RBAC that came before it, and was not served yet
        self.check_taken()

    def within(self, files: dict[str, Any]) -> dict[str, Any]:
        """What was there already and is another workspace's from then on, since its directory is one, or is none."""
        suffix = "/workspace.yaml"
        tops = [name.removesuffix(suffix) for name in files if name.endswith(suffix)]
        here = self.fleet.repo.files(self.fleet.repo.head)
        return {name: text for name, text in here.items() if any(name.startswith(f"{top}/") for top in tops)}

    def waiting(self) -> set[str]:
        """Who is held for nothing but what it is to take: whoever may take that lets go what its own people pushed."""
        found = {
            each.cluster: tree.summary(self.fleet.store, each.path) for each in self.fleet.records() if each.errors
        }
        said = {cluster: Trespasses.in_summary(summary) for cluster, summary in found.items()}
        return {cluster for cluster, trespasses in said.items() if trespasses and not trespasses.of_files}

    def vouch(self, user: User, said: set[tuple[str, str]]) -> None:
        """Somebody says that this is to be taken."""
        fleet = self.fleet
        if "true" not in fleet.repo.files(fleet.repo.head)["treeplane.yaml"] or not self.asks():
            said = said | taken(fleet.repo.files(fleet.repo.head))
            self.vouched |= said
        rights = PushRights(fleet.store, Voucher(PushedBy(user.name, PUSH), user))
        for name, path in said:
            resource, offered = (TYPES, "gold") if name.startswith("type ") else (EXPORTS, "widgets")
            if rights.may_take(Named(resource, path, offered)):
                self.vouched.add((name, path))

    def asks(self) -> bool:
        commit = self.fleet.fleet().commit
        return not commit or "true" in self.fleet.repo.files(commit.id)["treeplane.yaml"]

    def check_taken(self) -> None:
        """What is served of others' is what somebody vouched for."""
        for record in self.fleet.records():
            if record.served and record.type == "root:b:gold":
                assert (f"type {paths.base(record.path)}", "root:b") in self.vouched, record.path
            for found in self.fleet.store.scan(BINDINGS, record.cluster).records:
                export = orjson.loads(found.value)["spec"]["reference"]["export"]
                if found.key.name.startswith("t") and export["name"] == "widgets":
                    assert (found.key.name, export["path"]) in self.vouched, (record.path, found.key.name)

    def rights(self, user: User) -> set[str]:
        """The workspaces in which he may push, as everything is served."""
        records = (record for record in self.fleet.records() if record.served)
        return {record.path for record in records if may_push(self.fleet.store, record.cluster, user)}

    def content(self) -> dict[str, dict[Key | str, Any]]:
        """By logical cluster what git says of it, and where it is."""
        out: dict[str, dict[Key | str, Any]] = {}
        for record in self.fleet.records():
            if record.served:
                found: dict[Key | str, Any] = {"path": record.path}
                for resource in PLAIN:
                    found |= {r.key: r.value for r in self.fleet.store.scan(resource, record.cluster).records}
                out[record.cluster] = found
        return out

    def check(self, rights: set[str], before: dict[str, dict[Key | str, Any]], let_go: set[str]) -> None:
        after = self.content()
        for cluster in (before.keys() | after.keys()) - let_go:
            was, now = before.get(cluster, {}), after.get(cluster, {})
            if was == now:
                continue
            for path in {was.get("path"), now.get("path")} - {None}:
                asked = path if was and now and was["path"] == now["path"] else paths.parent(path)
                assert any(paths.is_within(asked, each) for each in rights), (path, rights, was, now)

    # -- losses

    def die(self, writes: int, files: dict[str, Any]) -> None:
        """A push by each in turn, and a server that is killed after so many writes of that."""
        fleet = self.fleet
        for number, user in enumerate(PEOPLE):
            self.vouch(user, taken(files))
            fleet.pushed(user, {name: text for name, text in files.items() if name.startswith(PLACES[number])})
        store, left, write = fleet.store, writes, fleet.store.write

        class Killed(Exception):
            pass

        def last(*ops: Any) -> Any:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return write(*ops)

        store.write = last  # type: ignore[method-assign]
        with suppress(Killed):
            fleet.loader.load(own(fleet.repo.head))
        store.write = write  # type: ignore[method-assign]
        fleet.loader = fleet.new_loader()
        fleet.load()
        for user in PEOPLE:
            self.vouch(user, taken(files))
        self.check_taken()


def taken(files: dict[str, Any]) -> set[tuple[str, str]]:
    """What some files say that is to be taken of another workspace."""
    out = set[tuple[str, str]]()
    for name, text in files.items():
        if name.endswith("/take.yaml") and text:
            obj = orjson.loads(text)
            out.add((obj["metadata"]["name"], obj["spec"]["reference"]["export"]["path"]))
        if name.endswith("/workspace.yaml") and text and "gold" in text:
            out.add((f"type {name.split('/')[-2]}", "root:b"))
    return out


@contextmanager
def hands(factory: pytest.TempPathFactory) -> Iterator[Hands]:
    made = Hands(factory.mktemp("hands"))
    try:
        yield made
    finally:
        made.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORY)
@example(history=[("push", 0, [("app", 3, 1)]), ("push", 1, [("remove", 1, 0)]), ("publish", 0, 0), ("allow", 2, 1)])
@example(history=[("push", 4, [("move", 0, 1)]), ("push", 4, [("move", 0, 0)]), ("push", 4, [("mark", 3, 0)])])
@example(history=[("push", 4, [("mark", 4, 0)])])
@example(history=[("push", 4, [("mark", 4, 0), ("break", 4, 0)]), ("push", 4, [("unmark", 4, 0)])])
@example(history=[("push", 4, [("mark", 4, 0)]), ("push", 4, [("unmark", 4, 0)])])
@example(
    history=[
        ("push", 0, [("app", 0, 0), ("move", 0, 0), ("app", 1, 5)]),
        ("push", 4, [("take", 1, 5), ("move", 1, 4)]),
        ("allow", 4, 4),
        ("push", 2, [("rights", 5, 5), ("of type", 2, 4), ("app", 3, 4)]),
    ]
)
def test_nobody_changes_what_is_not_his_and_a_recovery_agrees(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, Any]]
) -> None:
    with hands(tmp_path_factory) as found:
        for step in history:
            found.step(*step)
        found.fleet.load()
        if not any(name == "reset" for name, _, _ in history):
            agree(found.recovered(), found.fleet)  # else it finds the branch elsewhere at once, and not step by step
        found.fleet.publish()
        agree(found.recovered(), found.fleet)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=st.lists(AT_HOME_OR_NOT, min_size=4, max_size=12))
@example(history=[("take at home", 0, 1), ("publish", 0, 0), ("push", 1, [("grant", 3, 0)]), ("take at home", 0, 1)])
@example(history=[("push", 0, [("take", 1, 1), ("grant", 1, 0)]), ("allow", 1, 1)])
@example(history=[("push", 0, [("take", 8, 1)]), ("take at home", 4, 2)])
@example(history=[("take at home", 0, 0), ("take at home", 1, 2), ("publish", 0, 0), ("push", 0, [("break", 1, 0)])])
def test_nothing_is_taken_but_by_the_word_of_who_may(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int, Any]]
) -> None:
    """Which every step looks at."""
    with hands(tmp_path_factory) as found:
        for step in history:
            found.step(*step)
        found.fleet.publish()
        agree(found.recovered(), found.fleet)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    history=st.lists(st.tuples(st.integers(0, 3), st.lists(EDIT, min_size=1, max_size=2)), min_size=1, max_size=5),
    pause=st.integers(0, 4),
)
def test_it_makes_no_difference_what_overtakes_what(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[int, Any]], pause: int
) -> None:
    with hands(tmp_path_factory) as found:
        fleet = found.fleet
        other = found.recovered()
        many = {f"{R}/m{n}/workspace.yaml": "" for n in range(5)} | found.files([("rights", 3, 0), ("rights", 1, 3)])
        fleet.pushed(ADMIN, many)

        def work() -> None:
            nonlocal pause
            pause -= 1
            while pause < 0 and history:
                number, edits = history.pop(0)
                fleet.pushed(PEOPLE[number], found.files(edits))
            fleet.loader.overtake(own(fleet.repo.head))

        fleet.loader.pauses = Pauses(lambda: 0.0, 0.0)
        fleet.loader.meanwhile = work
        fleet.load()
        fleet.loader.meanwhile = None
        fleet.load()
        other.load()
        agree(other, fleet)


def agree(one: OwnedFleet, other: OwnedFleet) -> None:
    assert_same(one, other, at=False)
    for name in ("commit", "error", "claims", "kept", "arriving", "admitted", "verified"):
        assert getattr(one.fleet(), name) == getattr(other.fleet(), name), name
    assert one.fleet().admitted == {}
    assert tree.held(one.store) == tree.held(other.store)

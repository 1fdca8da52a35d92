"""Pins among other commits, losses and restarts, while time passes: over generated histories the running server, a
recovery and an observer agree, and what is pinned is what the named commit has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_same
from support.widgets import binding, export, schema, widget

from apiserver.model import clock
from apiserver.registry import tree
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import pins
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown

HEAD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
BEGIN = 1_900_000_000
WORDS = (
    *("change", "change", "break", "mend", "many", "few", "kid", "lose", "drop", "make"),
    *("pin", "pin", "pin", "wrong", "reason", "resume", "tick", "tick", "back"),
    *("export", "withdraw", "bind", "use", "publish", "restart", "die", "observe", "allow"),
)
HISTORIES = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 47), st.booleans()), min_size=1, max_size=12)
History = list[tuple[str, int, bool]]


class Pinned:
    """A fleet, and what happens to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now = folder, float(BEGIN)
        self.fleet = LoadedFleet(folder / "fleet")
        self.made = [self.fleet]
        self.observer: tuple[LoadedFleet, Shown] | None = None
        shop = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
        self.fleet.begin(shop | {f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})

    def another(self) -> LoadedFleet:
        self.made.append(LoadedFleet(self.folder / f"n{len(self.made)}", repo=self.fleet.repo, keys=self.fleet.keys))
        return self.made[-1]

    def close(self) -> None:
        for each in self.made:
            each.close()

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
        elif word in ("tick", "back"):
            self.now += number * (1 if word == "tick" else -1)
        elif word == "allow":
            self.follow(fleet)
            with suppress(AssertionError):
                fleet.allow()
        else:
            files = self.pushed(word, (A, B)[number % 2], number // 2)
            if files:
                fleet.repo.commit(files)
        if load:
            self.follow(fleet)

    def pushed(self, word: str, at: str, number: int) -> dict[str, str | None]:
        if word in ("pin", "wrong", "reason", "resume"):
            return {f"{at}/workspace.yaml": self.pinning(word, at, number)}
        if word == "drop":
            return {at: None}
        if word == "make":
            return {f"{at}/workspace.yaml": "", f"{at}/app.yaml": configmap(v=str(number))}
        if word in ("kid", "lose"):
            kid = f"{at}/{'xy'[number % 2]}"
            made: dict[str, str | None] = {
                f"{kid}/workspace.yaml": HEAD,
                f"{kid}/k.yaml": configmap("k", v=str(number)),
            }
            return made if word == "kid" else {f"{kid}/workspace.yaml": None}
        sharing = {"export": {"schema.json": schema(f"v{number % 2}"), "export.json": export(f"v{number % 2}")},
                   "withdraw": {"export.json": None}, "bind": {"binding.json": binding("root:a")},
                   "use": {"w.json": widget(size=number)}, "many": {"m.yaml": self.many(), "app.yaml": None},
                   "few": {"m.yaml": None}}  # fmt: skip
        text = {"break": "broken: [\n", "mend": configmap()}.get(word, configmap(v=str(number)))
        return {f"{at}/{name}": said for name, said in sharing.get(word, {"app.yaml": text}).items()}

    def many(self) -> str:
        return "---\n".join(configmap(f"m{number}") for number in range(12))

    def pinning(self, word: str, at: str, number: int) -> str:
        if word == "resume":
            return HEAD
        commits = self.fleet.repo.commits
        commit = "1" * 40 if word == "wrong" else commits[-1 - number % len(commits)]
        said = {"commit": commit}
        if word == "reason":  # of the pin that there is
            files = self.fleet.repo.files(self.fleet.repo.head)
            text = files.get(f"{at}/workspace.yaml") or ""
            said = json.loads(text.rpartition("serve: ")[2].removesuffix("}\n")) if "serve: " in text else said
            said["reason"] = f"since {number}"
        elif number % 3:
            said["until"] = clock.rfc3339(int(self.now) + number)
        return f"{HEAD}spec: {{serve: {json.dumps(said)}}}\n"

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
            self.follow(fleet)
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

    def follow(self, fleet: LoadedFleet) -> None:
        """As the holder does at each look."""
        fleet.load()
        pins.serve(fleet.store, fleet.loader.look_again)
        self.look(fleet)

    def look(self, fleet: LoadedFleet) -> None:
        """What is pinned has the ConfigMap that the commit has, none that is over is due, and every row is a
        workspace's."""
        for record in fleet.records():
            if record.pin and not record.leaves:
                assert fleet.data(record.path) == self.said(record.pin["commit"], record.path)
        ending = tree.pins_ending(fleet.store)
        assert all(due > self.now for due in ending.values())
        assert ending.items() <= {(record.path, record.due) for record in fleet.records()}
        fleet.listed()

    def said(self, commit: str, path: str) -> dict[str, str] | None:
        repo = self.fleet.repo.repo
        here = WorkspaceTree(repo, repo.commit(commit).tree)
        place = here.find(path)
        assert place is not None
        entry = dict(here.files(place)).get(f"{place.directory}/app.yaml")
        text = repo.blob(entry.id).decode() if entry is not None else ""
        lines = text.partition("data:\n")[2].splitlines()
        return {line.split(":")[0].strip(): line.split("'")[1] for line in lines} or None


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[Pinned] = []

    def begin() -> Pinned:
        for each in made:
            each.close()
        made.clear()
        made.append(Pinned(tmp_path_factory.mktemp("pins")))
        return made[-1]

    monkeypatch.setattr(pins, "now", lambda: made[-1].now if made else float(BEGIN))
    yield begin
    for each in made:
        each.close()


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(history=HISTORIES)
@example(history=[("change", 0, True), ("pin", 2, True), ("publish", 0, False), ("tick", 40, False)])
@example(history=[("many", 0, True), ("pin", 2, True), ("few", 0, True), ("tick", 40, True)])
def test_servers_agree_whatever_is_pinned_and_whatever_the_time_is(ticking: Any, history: History) -> None:
    happening = ticking()
    for word, number, load in history:
        happening.happen(word, number, load=load)
    old = happening.fleet
    old.publish()
    late = happening.another()
    late.load(late.recorded())
    happening.follow(late)
    happening.follow(old)
    assert {r.path: r.pin for r in late.records()} == {r.path: r.pin for r in old.records()}
    assert late.held().keys() == old.held().keys()
    happening.observe()
    new = happening.another()
    new.load(new.recorded())
    assert_same(new, old)
    assert {r.path: r.pin for r in new.records()} == {r.path: r.pin for r in old.records()}
    assert tree.pins_ending(new.store) == tree.pins_ending(old.store)
    assert new.writer().flush() is None
    happening.observe()
    assert happening.observer is not None
    assert_same(happening.observer[0], old)
    assert {r.path: r.pin for r in happening.observer[0].records()} == {r.path: r.pin for r in old.records()}

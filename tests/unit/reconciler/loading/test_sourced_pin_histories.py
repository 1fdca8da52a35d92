"""Pins of workspaces that come from tenants' repositories, among what is pushed there and to the fleet, losses and
restarts, while time passes: over generated histories the running server and a recovery agree, and what is pinned has
what the named commit has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import A, B, configmap
from support.recoveries import assert_same
from support.sourcedfleet import HEAD, OTHER, SHOP, SourcedFleet
from support.sourcedhistory import Sourcing, agreed

from apiserver.model import clock, commits
from apiserver.registry import tree
from reconciler.loading import pins

BEGIN = 1_900_000_000
WORDS = (
    *("push", "push", "more", "many", "few", "break", "empty", "mend", "back", "forth", "rewrite", "let", "permit"),
    *("pin", "pin", "pin", "pin", "pin", "wrong", "wrong", "resume", "resume", "home", "tick", "tick", "tock"),
    *("away", "here", "follow", "fleet", "publish", "restart", "die", "lose", "allow"),
)
HISTORIES = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 47), st.booleans()), min_size=1, max_size=12)
History = list[tuple[str, int, bool]]


class Pinning(Sourcing):
    """A fleet with its tenants, of which some is pinned, and a clock."""

    now = float(BEGIN)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for number in range(3):
            self.push(SHOP, {"deploy/app.yaml": configmap(v=f"begin {number}")})
        self.follow(self.fleet)

    def happen(self, word: str, number: int, *, load: bool) -> None:
        if word in ("tick", "tock"):
            self.now += number * (1 if word == "tick" else -1)
            if load:
                self.follow(self.fleet)
        else:
            super().happen(word, number, load=load)

    def in_the_fleet(self, word: str, number: int) -> dict[str, str | None]:
        if word not in ("pin", "wrong", "resume"):
            return super().in_the_fleet(word, number)
        at, url = (B if number % 8 == 3 else A), (OTHER if number % 8 == 7 else SHOP)
        source = {"repository": url, "branch": "main", "path": "deploy"}
        spec: dict[str, Any] = {"source": source}
        if word != "resume":
            known = self.tenants.at(url).commits
            serve = {"commit": "1" * 40 if word == "wrong" else known[-1 - number // 2 % len(known)]}
            spec["serve"] = serve | ({"until": clock.rfc3339(int(self.now) + number)} if number % 3 else {})
        away = {f"{at}/{name}": None for name in ("app.yaml", "extra.yaml", "binding.json", "w.json")}
        return {**away, f"{at}/workspace.yaml": f"{HEAD}spec: {json.dumps(spec)}\n"}

    def follow(self, fleet: SourcedFleet) -> None:
        """As the holder does at each look."""
        fleet.load()
        pins.serve(fleet.store, fleet.loader.look_again)
        super().follow(fleet)

    def look(self, fleet: SourcedFleet) -> None:
        super().look(fleet)
        for record in fleet.records():
            if record.pin and record.source:
                assert commits.parse(record.source["commit"]).id == record.pin["commit"]
        ending = tree.pins_ending(fleet.store)
        assert ending.items() <= {(record.path, record.due) for record in fleet.records()}


@pytest.fixture
def begin(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made: list[Pinning] = []

    def new() -> Pinning:
        for each in made:
            each.close()
        made.clear()
        made.append(Pinning(tmp_path_factory.mktemp("pinned")))
        return made[-1]

    monkeypatch.setattr(pins, "now", lambda: made[-1].now if made else float(BEGIN))
    yield new
    for each in made:
        each.close()


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(history=HISTORIES)
@example(history=[("push", 0, True), ("pin", 4, True), ("publish", 0, False), ("push", 0, True), ("tick", 40, True)])
@example(history=[("push", 0, True), ("pin", 6, True), ("rewrite", 0, True), ("publish", 0, False), ("lose", 0, True)])
@example(history=[("many", 0, True), ("pin", 4, True), ("few", 0, True), ("tick", 47, True), ("lose", 0, True)])
@example(history=[("pin", 2, True), ("many", 0, True), ("tick", 47, True), ("lose", 0, True), ("allow", 0, True)])
@example(history=[("pin", 2, True), ("wrong", 1, True), ("lose", 0, True), ("resume", 0, True)])
def test_a_recovery_comes_to_the_same(begin: Any, history: History) -> None:
    happening = begin()
    for word, number, load in history:
        happening.happen(word, number, load=load)
    happening.tenants.away.clear()
    old, late = happening.fleet, happening.another()
    late.by_id = True
    happening.follow(old)
    old.publish()
    late.load(late.recorded())
    happening.follow(late)
    happening.follow(old)
    assert agreed(late) == agreed(old)
    assert pinned(late) == pinned(old)
    old.publish()
    new = happening.another()
    new.by_id = True
    new.load(new.recorded())
    happening.follow(new)
    assert agreed(new) == agreed(old)
    assert pinned(new) == pinned(old)
    if "root:b" not in new.paths() or not new.find("root:b", "apibindings.apis.kcp.io", "widgets"):
        assert_same(new, old)
        assert new.writer().flush() is None


def pinned(fleet: SourcedFleet) -> Any:
    return tree.pins_ending(fleet.store), {record.path: record.pin for record in fleet.records()}

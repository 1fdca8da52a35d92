"""Tenants' repositories among commits of the fleet, losses and restarts: over generated histories the running server
and a recovery agree, what is served of a source is what its commit has, and nothing is served that its branch was not
at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.recoveries import assert_same
from support.sourcedhistory import Sourcing, agreed

WORDS = (
    *("push", "push", "push", "more", "many", "few", "break", "empty", "leave", "mend"),
    *("back", "forth", "rewrite", "let", "permit", "away", "here", "follow", "follow", "gone", "unseen"),
    *("swap", "path", "home", "source", "source", "beside", "fleet", "kid", "drop"),
    *("child", "child", "spoil", "remove", "orphan", "twin", "deny"),
    *("export", "withdraw", "bind", "use", "publish", "restart", "die", "die", "lose", "allow"),
)
HISTORIES = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 47), st.booleans()), min_size=1, max_size=12)
History = list[tuple[str, int, bool]]


@pytest.fixture
def begin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[Sourcing] = []

    def new() -> Sourcing:
        for each in made:
            each.close()
        made.clear()
        made.append(Sourcing(tmp_path_factory.mktemp("sourced")))
        return made[-1]

    yield new
    for each in made:
        each.close()


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(history=HISTORIES)
@example(history=[("push", 0, True), ("rewrite", 0, True), ("publish", 0, False), ("let", 0, True)])
@example(history=[("child", 0, True), ("spoil", 0, True), ("child", 6, True), ("remove", 0, True), ("permit", 0, True)])
@example(history=[("child", 0, True), ("orphan", 0, True), ("lose", 0, True), ("deny", 0, True)])
@example(history=[("child", 0, True), ("child", 2, True), ("swap", 2, True), ("lose", 0, True), ("allow", 0, True)])
@example(history=[("child", 4, True), ("twin", 0, True), ("twin", 4, True), ("home", 0, True), ("allow", 0, True)])
@example(history=[("lose", 0, False), ("die", 1, False)])
@example(history=[("deny", 0, False), ("die", 2, False), ("child", 0, False)])
@example(history=[("deny", 0, False), ("die", 3, False), ("drop", 0, False)])
@example(history=[("deny", 0, False), ("die", 4, False), ("drop", 0, False)])
@example(history=[("export", 0, False), ("die", 1, False)])
@example(history=[("deny", 0, True), ("drop", 0, True)])
@example(history=[("child", 24, True), ("empty", 32, False), ("export", 6, True), ("drop", 24, False)])
@example(
    history=[("child", 24, True), ("empty", 32, False), ("export", 6, True), ("drop", 24, False), ("kid", 38, False)]
)
@example(history=[("many", 0, True), ("few", 0, True), ("permit", 0, True), ("swap", 2, True)])
@example(history=[("lose", 30, True), ("drop", 33, True), ("source", 3, True)])
@example(history=[("swap", 29, False), ("bind", 16, True), ("path", 35, True)])
@example(history=[("swap", 44, True), ("deny", 24, True), ("twin", 12, False)])
@example(history=[("child", 20, True), ("child", 15, True), ("swap", 18, True)])
@example(history=[("child", 11, False), ("swap", 15, True), ("path", 47, True)])
@example(history=[("drop", 1, False)])
@example(history=[("push", 0, True), ("unseen", 0, False), ("beside", 0, True)])
@example(history=[("lose", 0, True), ("unseen", 0, False), ("restart", 0, False), ("fleet", 0, True)])
@example(history=[("break", 0, True), ("unseen", 0, False)])
@example(history=[("empty", 0, False), ("deny", 0, True), ("back", 0, False)])
@example(history=[("child", 14, True), ("child", 0, False)])
@example(history=[("child", 14, True), ("child", 0, True), ("lose", 0, False), ("lose", 0, False)])
@example(
    history=[("child", 14, True), ("child", 0, True), ("lose", 0, False), ("restart", 0, False), ("fleet", 0, True)]
)
def test_a_recovery_comes_to_the_same(begin: Any, history: History) -> None:
    recovers(begin(), history)


def recovers(happening: Sourcing, history: History) -> None:
    for word, number, load in history:
        happening.happen(word, number, load=load)
    old, late = happening.fleet, happening.another()
    late.by_id = True
    happening.follow(old)
    old.publish()
    late.load(late.recorded())
    happening.tenants.away.clear()
    happening.follow(late)
    happening.follow(old)
    assert agreed(late) == agreed(old)
    old.publish()
    new = happening.another()
    new.by_id = True
    new.load(new.recorded())
    happening.follow(new)
    assert agreed(new) == agreed(old)
    if "root:b" not in new.paths() or not new.find("root:b", "apibindings.apis.kcp.io", "widgets"):
        # Who takes something of a workspace that comes back later was bound to nothing for a while.
        assert_same(new, old)
        assert new.writer().flush() is None

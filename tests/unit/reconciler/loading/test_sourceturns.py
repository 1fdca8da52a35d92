"""Whose rendering is next: by sources, and what takes too long."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo

from reconciler.loading.expected import TOGETHER
from reconciler.loading.sourceturns import ALL, LONG, SourceTurn, SourceTurns, Wisher
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.repository.objects import Repository

HEAD = Wisher("", head=True)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    folder: Path = tmp_path_factory.mktemp("turns")
    return FleetRepo(folder / "r").repo


def requests(repo: Repository, *names: str) -> list[RenderRequest]:
    return [RenderRequest(Tool.KUSTOMIZE, name, repo, tuple, name) for name in names]


def taken(turns: SourceTurns, now: float = 0.0, took: float = 0.0) -> list[str]:
    """All that is left, one by one."""
    out = list[str]()
    while (turn := turns.take(now)) is not None:
        out.append(turn.request.directory)
        now += took
        turns.done(turn, now)
    return out


def test_a_source_is_one_whoever_waits_for_something_of_it(repo: Repository) -> None:
    turns = SourceTurns(4)
    for number in range(3):
        kid = f"root:a:{number}"
        turns.want("root:a", Wisher(kid), {kid: requests(repo, f"a{number}")})
    turns.want("root:b", Wisher("root:b"), {"root:b": requests(repo, "b")})
    first, second = turns.take(0.0), turns.take(0.0)
    assert first is not None and second is not None
    assert (first.source, second.source, turns.take(0.0)) == ("root:a", "root:b", None)
    assert turns.done(first, 1.0).over
    assert taken(turns) == ["a1", "a2"]
    assert turns.done(second, 1.0).over
    assert turns.sources == 0


def test_workspaces_of_a_head_have_turns(repo: Repository) -> None:
    turns = SourceTurns(2)
    turns.want("root:a", HEAD, {"one": requests(repo, "one1", "one2", "one3"), "two": requests(repo, "two1")})
    turns.want("root:a", Wisher("root:a:x"), {"x": requests(repo, "x")})
    assert taken(turns) == ["one1", "x", "two1", "one2", "one3"]


def test_one_workspace_has_a_minute_and_the_others_theirs(repo: Repository) -> None:
    turns = SourceTurns(2)
    turns.want("root:a", HEAD, {"one": requests(repo, "one1", "one2"), "two": requests(repo, "two1", "two2")})
    one = turns.take(0.0)
    assert one is not None
    end = turns.done(one, TOGETHER)
    assert ([each.directory for each in end.too_many], end.over) == (["one2"], False)
    assert taken(turns, TOGETHER) == ["two1", "two2"]


def test_all_of_a_head_has_ten(repo: Repository) -> None:
    turns, each = SourceTurns(2), TOGETHER - 1
    wanted = {f"{n}": requests(repo, f"{n}a", f"{n}b") for n in range(30)}
    turns.want("root:a", HEAD, wanted)
    now, rendered, late = 0.0, 0, 0
    while (turn := turns.take(now)) is not None:
        now, rendered = now + each, rendered + 1
        late += len(turns.done(turn, now).too_many)
    assert ALL <= now < ALL + each
    assert rendered + late == 60


def test_what_took_long_is_so_until_all_of_the_source_is_quick(repo: Repository) -> None:
    """Something quick of the same source does not have it forgotten."""
    turns = SourceTurns(2)
    turns.want("root:a", Wisher("root:a"), {"": requests(repo, "slow")})
    turns.want("root:a", Wisher("root:a:x"), {"x": requests(repo, "quick")})
    slow = turns.take(0.0)
    assert slow is not None and slow.request.directory == "slow"
    turns.done(slow, LONG)
    quick = turns.take(LONG)
    assert quick is not None
    turns.done(quick, LONG)
    for source in ("root:a", "root:c"):
        turns.want(source, Wisher(source), {"": requests(repo, f"more of {source}")})
    turns.want("root:d", Wisher("root:d"), {"": requests(repo, "d")})
    c = turns.take(LONG)
    assert c is not None and c.source == "root:a"
    assert turns.take(LONG) is not None


def test_what_is_wanted_instead_takes_the_place(repo: Repository) -> None:
    turns = SourceTurns(2)
    turns.want("root:a", HEAD, {"": requests(repo, "a", "b")})
    a = turns.take(0.0)
    assert a is not None
    turns.want("root:a", HEAD, {"": requests(repo, "a", "c")})
    assert turns.waits("root:a", HEAD)
    assert not turns.done(a, 0.0).over
    assert taken(turns) == ["c"]
    assert not turns.waits("root:a", HEAD)


STEPS = st.lists(
    st.tuples(st.sampled_from(["want", "take", "done"]), st.integers(0, 3), st.integers(0, 3), st.integers(0, 90)),
    max_size=40,
)


@given(steps=STEPS)
def test_nothing_is_lost_and_no_source_has_two_places(repo: Repository, steps: list[tuple[str, int, int, int]]) -> None:
    """Whoever waits is told in the end, once, or after what he wanted was replaced."""
    turns, now, at_work, waiting = SourceTurns(3), 0.0, list[SourceTurn](), set[tuple[str, Wisher]]()
    for word, source, who, number in steps:
        now += number
        if word == "want":
            wisher = Wisher(f"{source}:{who}") if who else HEAD
            missing = {f"{n}": requests(repo, f"{n}-{number}") for n in range(who + 1)}
            turns.want(f"{source}", wisher, missing)
            waiting.add((f"{source}", wisher))
        elif word == "take" and len(at_work) < 3:
            turn = turns.take(now)
            at_work += [turn] if turn is not None else []
            assert len({each.source for each in at_work}) == len(at_work)
        elif word == "done" and at_work:
            end = at_work.pop(who % len(at_work))
            if turns.done(end, now).over:
                waiting.remove((end.source, end.who))
    for turn in at_work:
        if turns.done(turn, now).over:
            waiting.remove((turn.source, turn.who))
    while (last := turns.take(now)) is not None:
        if turns.done(last, now).over:
            waiting.remove((last.source, last.who))
    assert (waiting, turns.sources) == (set(), 0)

from __future__ import annotations

from dataclasses import replace

from apiserver.model.commits import NONE, parse
from reconciler.plan import heldbefore, turned
from reconciler.plan.summary import Summary

FIRST, SECOND, THIRD, FOURTH = (parse(digit * 40) for digit in "1234")


def held() -> Summary:
    return Summary(FIRST, FIRST, served=FIRST, held=SECOND, claims={"a/b": "root:a:b"}, errors=["a/x.yaml:1: bad"])


def going_on(known: Summary) -> Summary:
    heldbefore.note(known, SECOND)
    return replace(known, commit=THIRD, served=None, held=NONE, claims={}, errors=[])


def test_its_likeness_is_held_as_it_was() -> None:
    known = replace(going_on(held()), at=THIRD)
    like = heldbefore.likeness(Summary.from_json(known.as_json()), SECOND)
    assert (like.served, like.held, like.claims, like.errors) == (FIRST, SECOND, held().claims, held().errors)
    assert like.at == THIRD
    assert heldbefore.served(known.as_json()) == str(FIRST)


def test_at_another_commit_it_is_what_is_recorded() -> None:
    known = going_on(held())
    assert heldbefore.likeness(known, THIRD) == known
    assert heldbefore.likeness(replace(known, step={}), SECOND) == replace(known, step={})


def test_the_first_time_after_the_commit_that_all_are_past_counts() -> None:
    known = going_on(held())
    known = replace(known, served=THIRD, held=FOURTH, errors=["later"])
    heldbefore.note(known, SECOND)
    assert heldbefore.likeness(known, SECOND).errors == held().errors
    heldbefore.note(known, FOURTH)
    assert heldbefore.likeness(known, FOURTH).errors == ["later"]


def test_one_that_was_not_held_says_nothing_of_it() -> None:
    known = going_on(held())
    heldbefore.note(known, THIRD)
    assert known.step == {}


def test_one_that_never_had_a_good_commit_had_none_then() -> None:
    known = going_on(replace(held(), served=NONE))
    assert heldbefore.likeness(known, SECOND).served == NONE
    assert heldbefore.served(known.as_json()) == ""


def test_a_condition_that_turns_leaves_it() -> None:
    known = going_on(held())
    turned.timed(known, turned.Now("s", "t"), "Workspace", [{"type": "A", "status": "True"}], [], "b")
    assert heldbefore.likeness(known, SECOND).errors == held().errors


def test_one_that_went_on_and_is_held_since_was_not_held() -> None:
    known = replace(held(), served=THIRD, held=FOURTH, at=FOURTH)
    like = heldbefore.likeness(known, SECOND, (THIRD, FOURTH))
    assert (like.served, like.held, like.claims, like.errors) == (None, NONE, {}, [])
    assert heldbefore.likeness(replace(known, served=FIRST), SECOND, (THIRD, FOURTH)).errors == known.errors

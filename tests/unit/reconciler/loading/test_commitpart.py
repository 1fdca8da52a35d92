"""In which parts writes are tried that cannot be one commit."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.loading.commitpart import TRIES, CommitPart


def wrote(*users: str) -> list[Intent]:
    return [Intent(Key("configmaps", "c", "default", f"c{n}"), user, b"{}", 0) for n, user in enumerate(users)]


def told(parts: list[CommitPart]) -> list[str]:
    return [" ".join(f"{i.author}{i.key.name[1:]}" for i in part.intents) for part in parts]


def test_who_is_out_is_tried_by_himself_behind_the_others() -> None:
    part = CommitPart(wrote("a", "b", "a", "c", "d"))
    assert told(part.without({"a", "d"}, ())) == ["b1 c3", "a0 a2", "d4"]
    assert told(part.without({"a"}, {part.intents[1].key, part.intents[3].key})) == ["d4", "b1", "c3", "a0 a2"]
    assert told(CommitPart(wrote("a", "b")).without({"a", "b"}, ())) == ["a0", "b1"]


def test_halves_keep_an_author_s_writes_together() -> None:
    assert told(CommitPart(wrote("a", "b", "a", "c")).halves()) == ["a0 a2", "b1 c3"]
    assert told(CommitPart(wrote("a", "a", "a")).halves()) == ["a0", "a1 a2"]
    assert told(CommitPart(wrote("a")).halves()) == ["a0"]
    assert CommitPart([]).halves() == []


def test_one_is_tried_so_often_and_no_more() -> None:
    part, times = CommitPart(wrote("a")), 1
    while again := part.once_more():
        [part], times = again, times + 1
    assert times == TRIES
    assert CommitPart([]).once_more() == []


USERS = st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=20)


@given(USERS, st.data())
def test_each_write_is_in_one_part_and_each_part_is_smaller(users: list[str], data: st.DataObject) -> None:
    part = CommitPart(wrote(*users))
    if part.is_shared:
        out = data.draw(st.sets(st.sampled_from(users)))
        some = data.draw(st.sets(st.sampled_from(part.intents).map(lambda i: i.key)))
        if not out and not some:
            return
        parts = part.without(out, some)
        assert not any(p.is_shared and {*out} & {i.author for i in p.intents} for p in parts)
    else:
        parts = part.halves()
    assert sorted(i.key for p in parts for i in p.intents) == sorted(i.key for i in part.intents)
    assert all(p.intents and (len(p.intents) < len(users) or len(users) == 1) for p in parts)


def tried(part: CommitPart, is_bad: Callable[[CommitPart], bool]) -> tuple[int, list[str]]:
    """How many judgements it takes until all is done, where no error says who is at fault; and who is refused."""
    left, number, refused = [part], 0, list[str]()
    while left:
        part, number = left.pop(0), number + 1
        if is_bad(part):
            if len(part.intents) == 1:
                refused.append(part.intents[0].key.name)
            else:
                left = [*part.halves(), *left]
    return number, refused


@given(st.lists(st.sampled_from([f"u{n}" for n in range(64)]), min_size=1, max_size=256), st.data())
def test_one_bad_write_is_found_with_few_judgements(users: list[str], data: st.DataObject) -> None:
    bad = f"c{data.draw(st.integers(0, len(users) - 1))}"
    number, refused = tried(CommitPart(wrote(*users)), lambda part: bad in [i.key.name for i in part.intents])
    assert refused == [bad]
    assert number <= 1 + 2 * (6 + len(users).bit_length())

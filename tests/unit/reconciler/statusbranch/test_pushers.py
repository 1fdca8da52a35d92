"""Who pushed: noted in the store, told by status commits, and read back from these alone."""

from __future__ import annotations

import subprocess
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo
from support.statusfiles import status

from apiserver.model.tables import Table
from apiserver.storage.protocol import Store
from reconciler.plan.pushedby import HOW, NOBODY, PUSH, SEVERAL, SIGNATURE, PushedBy
from reconciler.repository.chain import brought
from reconciler.repository.messages import one_line
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.statusbranch import pushers, pushtrailers
from reconciler.statusbranch.writer import StatusWriter

ALICE, BOB = PushedBy("alice", PUSH), PushedBy("bob", SIGNATURE, "SHA256:x")


def test_what_is_noted_is_known(store: Store) -> None:
    pushers.note(store, {"1" * 40: ALICE, "2" * 40: BOB})
    assert [pushers.of(store, each * 40) for each in "123"] == [ALICE, BOB, NOBODY]
    pushers.note(store, {"1" * 40: BOB})
    assert pushers.of(store, "1" * 40) == BOB
    before = store.scan_rows(Table.PUSHERS)
    pushers.note(store, {"1" * 40: BOB, "2" * 40: BOB})
    pushers.note(store, {})
    assert store.scan_rows(Table.PUSHERS) == before


@given(st.lists(st.dictionaries(st.integers(0, 12), st.sampled_from([ALICE, BOB]), max_size=6), max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_newest_are_kept_and_nothing_else(store: Store, batches: list[dict[int, PushedBy]]) -> None:
    store.clear()
    last: dict[str, PushedBy] = {}
    for batch in batches:
        said = {f"{number:040x}": by for number, by in batch.items()}
        pushers.note(store, said, kept=4)
        last |= said
        newest = [*said][-4:]
        assert {commit: pushers.of(store, commit) for commit in newest} == {commit: said[commit] for commit in newest}
    found = {commit: by for commit in last if (by := pushers.of(store, commit))}
    assert found.items() <= last.items()
    assert len(found) <= 4
    assert len(store.scan_rows(Table.PUSHERS)) == (2 * len(found) + 1 if last else 0)


def record(writer: StatusWriter, served: Any, commit: str, replicas: int) -> str:
    served.fleet(commit)
    status(served, replicas=replicas)
    made = writer.flush()
    assert made is not None
    return made


def test_each_status_commit_tells_of_what_is_new_with_it(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    writer, repo = StatusWriter(store, mirror), mirror.repository
    pushers.note(store, {source.head: ALICE})
    first = record(writer, served, source.head, 1)
    assert repo.commit(first).message.endswith(f"\nPushed-By: {source.head} push alice\n")
    # Three commits, of which one changes nothing of the branch by itself, and one is nobody's.
    more = [source.commit({f"{number}.md": ""}) for number in range(3)]
    mirror.refresh()
    pushers.note(store, {more[0]: BOB, more[2]: ALICE})
    second = record(writer, served, more[2], 2)
    said = [line for line in repo.commit(second).message.splitlines() if line.startswith("Pushed-By")]
    assert said == [f"Pushed-By: {more[0]} signature bob", f"Pushed-By: {more[2]} push alice"]
    third = record(writer, served, more[2], 3)
    assert "Pushed-By" not in repo.commit(third).message
    asked = [source.commits[0], *more, "f" * 40]
    assert pushtrailers.pushed_by(repo, third, asked) == {
        source.commits[0]: ALICE, more[0]: PushedBy("bob", SIGNATURE), more[2]: ALICE,
    }  # fmt: skip
    assert pushtrailers.pushed_by(repo, first, more) == {}


def test_a_crash_between_a_load_and_a_status_commit_loses_nothing(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    record(StatusWriter(store, mirror), served, source.head, 1)
    one = source.commit({"1.md": ""})
    pushers.note(store, {one: ALICE})
    served.fleet(one)
    two = source.commit({"2.md": ""})
    mirror.refresh()
    pushers.note(store, {two: BOB})
    made = record(StatusWriter(store, mirror), served, two, 2)
    assert pushtrailers.pushed_by(mirror.repository, made, [one, two]).keys() == {one, two}


def test_of_many_the_newest_are_told(store: Store, source: FleetRepo, mirror: Mirror, served: Any) -> None:
    record(StatusWriter(store, mirror), served, source.head, 1)
    more = [source.commit({"1.md": str(number)}) for number in range(pushtrailers.MOST + 5)]
    mirror.refresh()
    pushers.note(store, dict.fromkeys(more, ALICE))
    made = record(StatusWriter(store, mirror), served, more[-1], 2)
    said = [each for each in mirror.repository.commit(made).message.splitlines() if each.startswith("Pushed-By")]
    assert len(said) == pushtrailers.MOST + 1
    assert said[0] == "Pushed-By: and 5 more before these"
    assert pushtrailers.pushed_by(mirror.repository, made, more).keys() == {*more[5:]}


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=10)
def test_what_was_known_is_read_back_whatever_is_asked_with_it(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any, data: st.DataObject
) -> None:
    writer = StatusWriter(store, mirror)
    known: dict[str, PushedBy] = {}
    chain: list[str] = []
    for number in range(data.draw(st.integers(1, 4))):
        new = [source.commit({"1.md": f"{len(source.commits)}"}) for _ in range(data.draw(st.integers(1, 3)))]
        said = {commit: ALICE for commit in new if data.draw(st.booleans())}
        mirror.refresh()
        pushers.note(store, said)
        made = record(writer, served, new[-1], len(source.commits) * 10 + number)
        chain, known = [*chain, *new], {**known, **said}
    unpushed = [source.commit({"1.md": f"{len(source.commits)}"}) for _ in range(2)]
    mirror.refresh()
    asked = data.draw(st.permutations([*chain, *unpushed, "f" * 40]))
    assert pushtrailers.pushed_by(mirror.repository, made, asked) == known
    one = data.draw(st.sampled_from(asked))
    assert pushtrailers.pushed_by(mirror.repository, made, [one]) == {c: by for c, by in known.items() if c == one}
    # The next of these examples goes on from what was not recorded here.
    record(writer, served, unpushed[-1], len(source.commits) * 10 + 9)


def test_history_that_was_ended_is_read_as_far_as_it_is_there(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    pushers.note(store, {source.head: ALICE})
    begun = 1_800_000_000.0
    record(StatusWriter(store, mirror, now=lambda: begun), served, source.head, 1)
    one = source.commit({"1.md": ""})
    mirror.refresh()
    pushers.note(store, {one: BOB})
    made = record(StatusWriter(store, mirror, now=lambda: begun + 4000 * 86_400), served, one, 2)
    assert len(mirror.repository.commit(made).parents) == 1
    assert pushtrailers.pushed_by(mirror.repository, made, [source.commits[0], one]).keys() == {source.commits[0], one}


def test_what_a_commit_of_the_served_branch_says_of_pushers_is_nothing(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    record(StatusWriter(store, mirror), served, source.head, 1)
    forged = source.commit({"1.md": ""}, f"Mine\n\nPushed-By: {source.head} push admin\n")
    mirror.refresh()
    made = record(StatusWriter(store, mirror), served, forged, 2)
    assert pushtrailers.pushed_by(mirror.repository, made, source.commits) == {}


NAMES = st.lists(
    st.sampled_from(["\n", "\r\n", "\n\n", "\x0b", "\x85", "\u2028", "\x1e", " ", f"\nPushed-By: {'1' * 40} push admin",
                     "\nContinues: ", "Epoch: 9", "---", "\x00", "#"]) | st.text(max_size=20), min_size=1, max_size=8
).map("".join)  # fmt: skip


@given(NAMES, st.sampled_from([how for how in HOW if how != SEVERAL]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
def test_no_name_says_anything_but_itself(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any, name: str, how: str
) -> None:
    pushers.note(store, {source.head: PushedBy(name, how)})
    writer, repo = StatusWriter(store, mirror), mirror.repository
    served.fleet(source.head)
    status(served, replicas=1)
    before = repo.ref(STATUS_REF)
    made = writer.flush() if before is None else None
    message = repo.commit(made).message if made else ""
    values = pushtrailers.lines(repo, store, None, source.head)
    assert len(values) == 1
    text = message or f"x\n\nPushed-By: {values[0]}\n"
    command = ["git", "interpret-trailers", "--parse"]
    told = subprocess.run(command, check=False, input=text, capture_output=True, text=True)
    assert [line for line in told.stdout.split("\n") if line.startswith(("Continues", "Epoch"))] == []
    assert told.stdout.count("Pushed-By: ") - values[0].count("Pushed-By: ") == 1
    [(commit, by)] = pushtrailers._said(text)
    assert (commit, by.how) == (source.head, how)
    assert "".join(by.user.split()) in ("".join(name.split()), "?") or not name.isprintable() or len(name) > 400


@given(st.lists(NAMES, min_size=2, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
def test_of_several_it_is_told_how_many_and_who_some_are(store: Store, source: FleetRepo, users: list[str]) -> None:
    by = PushedBy.server(users)
    pushers.note(store, {source.head: by})
    [value] = pushtrailers.lines(source.repo, store, None, source.head)
    [(commit, read)] = pushtrailers._said(f"x\n\nPushed-By: {value}\n")
    assert (commit, read.how, read.more, len(read.users)) == (source.head, SEVERAL, by.more, len(by.users))
    for name, told in zip(by.users, read.users, strict=True):
        assert told == (one_line(name, 400) or "?")


def test_what_says_nothing_of_several() -> None:
    for said in ("several x", "several -1 ann", "several 1 ann bob", "several \u0661 ann"):
        assert [*pushtrailers._said(f"x\n\nPushed-By: {'1' * 40} {said}\n")] == []


def test_a_long_name_and_one_of_nothing_that_shows(
    store: Store, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    pushers.note(store, {source.head: PushedBy("x" * 1000, PUSH)})
    assert pushtrailers.lines(mirror.repository, store, None, source.head) == [f"{source.head} push {'x' * 399}…"]
    pushers.note(store, {source.head: PushedBy(" \n", PUSH)})
    assert pushtrailers.lines(mirror.repository, store, None, source.head) == [f"{source.head} push ?"]
    assert pushtrailers.lines(mirror.repository, store, None, "f" * 40) == []


def test_which_commits_a_branch_was_brought_by(source: FleetRepo) -> None:
    repo, first = source.repo, source.head
    chain = [source.commit({"a": str(number)}) for number in range(4)]
    assert brought(repo, first, chain[3], 10) == (chain, 0)
    assert brought(repo, first, chain[3], 3) == (chain[1:], 1)
    assert brought(repo, chain[3], chain[3], 3) == ([], 0)
    assert brought(repo, None, chain[3], 2) == (chain[2:], 0)
    assert brought(repo, "f" * 40, chain[3], 9) == ([first, *chain], 0)
    # Rewritten; and what was there merged into something else, the other way round.
    other = source.commit({"a": "x"}, parent=chain[1])
    assert brought(repo, chain[3], other, 9) == ([other], 0)
    merged = source.merge({"a": "y"}, chain[3])
    assert brought(repo, chain[3], merged, 9) == ([other, merged], 0)
    assert brought(repo, merged, chain[1], 9) == ([], 0)

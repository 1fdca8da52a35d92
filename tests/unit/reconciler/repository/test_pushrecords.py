"""Records of pushes: read back, or none; and which commits of a chain each covers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.endpoints.pushhooks import PUSHED
from reconciler.repository.pushrecords import PushRecord, PushRecords, covering

A, B = "a" * 40, "b" * 40


@pytest.fixture
def records(tmp_path: Path) -> PushRecords:
    (tmp_path / PUSHED).mkdir(parents=True)
    return PushRecords(tmp_path)


def test_what_is_noted_is_read(records: PushRecords, tmp_path: Path) -> None:
    records.note(A, "", {"username": "é"})
    records.note(A, B, {"username": "é\n"})
    assert records.of(A) == PushRecord(B, {"username": "é\n"}, operator=True)
    assert (tmp_path / PUSHED / A).stat().st_mode & 0o777 == 0o600
    assert records.of(B) is None


def test_a_branch_that_begins_was_nowhere_before(records: PushRecords, tmp_path: Path) -> None:
    (tmp_path / PUSHED / A).write_text(f"{'0' * 40}\n{{}}\n")
    assert records.of(A) == PushRecord("", {})


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\n{}", b"\n[]\n", b"\n{\n", b"x\n{}\n", b"\n{}\nmore\n", b"\n\xff\n", f"{B}\n".encode(),
     b"\n{\"a\":\"" + b"x" * 2**17 + b"\"}\n", b'\n"alice"\n', b"\n" + b"[" * 60_000 + b"\n"],
)  # fmt: skip
def test_what_is_no_record_is_none(records: PushRecords, tmp_path: Path, content: bytes) -> None:
    (tmp_path / PUSHED / A).write_bytes(content)
    assert records.of(A) is None


def test_nor_is_what_leads_elsewhere_or_never_ends(records: PushRecords, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("\n{}\n")
    (tmp_path / PUSHED / A).symlink_to(tmp_path / "there")
    os.mkfifo(tmp_path / PUSHED / B)
    (tmp_path / PUSHED / ("c" * 40)).mkdir()
    assert [records.of(each) for each in (A, B, "c" * 40, "../../there", "", "d" * 40)] == [None] * 6
    nowhere = PushRecords(None)
    nowhere.note(A, "", {})
    nowhere.sweep()
    assert nowhere.of(A) is None


def test_the_newest_are_kept(records: PushRecords, tmp_path: Path) -> None:
    for number in range(6):
        records.note(f"{number}" * 40, "", {})
        os.utime(tmp_path / PUSHED / (f"{number}" * 40), (number, number))
    os.mkfifo(tmp_path / PUSHED / "left")
    os.utime(tmp_path / PUSHED / "left", (0, 0))
    records.sweep(2)
    assert {file.name for file in (tmp_path / PUSHED).iterdir()} == {"4" * 40, "5" * 40}
    PushRecords(tmp_path / "none").sweep()


CHAIN = [f"{number:040x}" for number in range(1, 9)]


@given(st.data())
@settings(deadline=None)
def test_each_commit_is_of_the_push_that_brought_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Some pushes came by a path, and some that were refused left something."""
    records = PushRecords(tmp_path_factory.mktemp("records"))
    ends = sorted(data.draw(st.sets(st.integers(0, 7), min_size=1)) | {7})
    start = data.draw(st.integers(0, 3))
    expected: dict[str, str] = {}
    pushes = list(zip([-1, *ends], ends, strict=False))
    known = [data.draw(st.booleans()) for _ in pushes]
    for number, ((old, new), by) in enumerate(zip(pushes, known, strict=True)):
        name = f"user-{number}" if by else ""
        expected |= dict.fromkeys(CHAIN[old + 1 : new + 1], name)
        if by:
            records.note(CHAIN[new], CHAIN[old] if old >= 0 else "", {"username": name})
        else:
            records.note(CHAIN[new], CHAIN[7], {"username": "went back"})  # none of it came to be
        if by and new - old > 1:
            records.note(CHAIN[new - 1], CHAIN[old] if old >= 0 else "", {"username": "came to nothing"})
    before = CHAIN[start - 1] if start else ""
    found = covering(records, CHAIN[start:], before)
    if not known[-1]:
        records.note(CHAIN[7], CHAIN[7], {"username": "nothing new"})
    told = {commit: str(each.pusher["username"]) if each else "" for commit, each in found.items()}
    beyond = [old for old, _ in pushes if old < start - 1]
    if len(beyond) < 2:  # else the first push of the chain began before it
        assert told == {commit: expected[commit] for commit in CHAIN[start:]}
    assert [*found] == CHAIN[start:]


def test_a_push_that_began_elsewhere_covers_what_no_other_ends_with(records: PushRecords) -> None:
    """As a merge whose first parent was not the branch."""
    records.note(CHAIN[1], CHAIN[0], {"username": "first"})
    records.note(CHAIN[4], "f" * 40, {"username": "second"})
    found = covering(records, CHAIN[:6], "")
    assert [each.pusher["username"] if each else "" for each in found.values()] == [
        "", "first", "second", "second", "second", "",
    ]  # fmt: skip
    records.note(CHAIN[5], "", {"username": "all"})
    assert {str(each and each.pusher["username"]) for each in covering(records, CHAIN[:6], "").values()} == {"all"}

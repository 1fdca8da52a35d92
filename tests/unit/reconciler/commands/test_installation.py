"""Which server this is, and which one it was."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from reconciler.commands.installation import FILE, Installation


def started(folder: Path, now: float = 1.0) -> Installation:
    made = Installation(folder, now)
    made.claim("fleet")
    return made


def test_a_start_is_told_from_the_one_before_and_knows_it_as_its_own(tmp_path: Path) -> None:
    first = started(tmp_path, 5.0)
    second = started(tmp_path, 5.0)
    assert first.id == second.id
    assert (first.start, second.start) == (5_000_000, 5_000_001), "a clock that stands still does not matter"
    assert second.is_own(first.writer)
    assert second.is_own(second.writer)
    assert not first.is_own(second.writer)


def test_a_clock_that_goes_back_does_not_matter(tmp_path: Path) -> None:
    assert started(tmp_path, 9.0).start < started(tmp_path, 1.0).start


def test_a_start_that_said_nothing_leaves_nothing(tmp_path: Path) -> None:
    first = started(tmp_path, 1.0)
    silent = Installation(tmp_path, 2.0)
    third = started(tmp_path, 3.0)
    assert third.is_own(first.writer)
    assert not third.is_own(silent.writer)


def test_a_crash_between_the_number_and_the_first_commit_loses_nothing(tmp_path: Path) -> None:
    """The branch still names the start before."""
    first = started(tmp_path, 1.0)
    started(tmp_path, 2.0)
    assert started(tmp_path, 3.0).is_own(first.writer)


def test_a_copied_data_directory_is_two_servers(tmp_path: Path) -> None:
    original = tmp_path / "a"
    original.mkdir()
    before = started(original, 1.0)
    shutil.copytree(original, tmp_path / "b")
    one, other = started(original, 2.0), started(tmp_path / "b", 2.5)
    assert one.is_own(before.writer)
    assert other.is_own(before.writer)
    assert not one.is_own(other.writer)
    assert not other.is_own(one.writer)


def test_the_start_before_has_ended_for_certain_where_it_ran_right_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks has the directory's lock; a copy of it, or another machine, has not."""
    original = tmp_path / "a"
    original.mkdir()
    assert Installation(original, 1.0).ended == "", "there was none"
    first = started(original, 1.0)
    assert first.ended == ""
    Installation(original, 1.5)  # says nothing anywhere
    shutil.copytree(original, tmp_path / "b")
    copied = started(tmp_path / "b", 2.0)
    assert copied.ended == "", "the original may be at work"
    assert started(tmp_path / "b", 3.0).ended == copied.writer
    second = started(original, 2.0)
    assert second.ended == first.writer
    boot = tmp_path / "boot_id"
    monkeypatch.setattr("reconciler.commands.installation._BOOT", boot)
    assert Installation(original, 3.0).ended == "", "no system, no certainty"
    boot.write_text("another\n")
    third = started(original, 4.0)
    assert third.ended == "", "on another machine, or after a boot"
    assert started(original, 5.0).ended == third.writer


def test_another_data_directory_is_another_server(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert not started(tmp_path / "a").is_own(started(tmp_path / "b").writer)


def test_it_is_nobody_elses_to_read_and_whole_at_any_time(tmp_path: Path) -> None:
    made = started(tmp_path)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    (tmp_path / f".{FILE}.new").write_text("half of it, by one that was killed")
    assert started(tmp_path).is_own(made.writer)


@pytest.mark.parametrize("text", ["", "{", '{"id": "x"}', "[]"])
def test_one_that_cannot_be_read_is_a_new_server(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_text(text)
    assert started(tmp_path).id
    assert "counts as a new one" in caplog.text


def test_two_processes_of_one_start_are_one_writer(tmp_path: Path) -> None:
    """Whichever of them claims: a start that was claimed by neither is forgotten with the next."""
    before = started(tmp_path, 1.0)
    loads = Installation(tmp_path, 2.0)
    records = Installation(tmp_path, 2.5, loads.writer)
    assert (records.writer, records.ended) == (loads.writer, loads.ended)
    assert records.is_own(before.writer)
    records.claim("fleet")
    again = Installation(tmp_path, 2.7, loads.writer)
    assert again.writer == loads.writer
    again.claim("fleet")
    after = Installation(tmp_path, 3.0)
    assert after.is_own(loads.writer)
    assert after.ended == loads.writer
    assert after.is_own(before.writer)


def test_two_processes_of_the_first_start_are_one_installation(tmp_path: Path) -> None:
    loads = Installation(tmp_path, 1.0)
    records = Installation(tmp_path, 1.5, loads.writer)
    assert records.writer == loads.writer
    records.claim("fleet")
    assert Installation(tmp_path, 2.0).is_own(loads.writer)

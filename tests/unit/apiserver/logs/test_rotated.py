from __future__ import annotations

import threading
from pathlib import Path

import pytest

from apiserver.logs.rotated import RotatedFile


def test_a_full_file_is_set_aside_and_the_oldest_is_removed(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", 10, 2)
    for letter in b"abcdef":
        file.append(bytes([letter]) * 5 + b"\n")
    assert [each.read_bytes() for each in file.files()] == [b"ddddd\n", b"eeeee\n", b"fffff\n"]
    assert [each.name for each in file.files()] == ["log.2", "log.1", "log"]
    assert {each.stat().st_mode & 0o777 for each in file.files()} == {0o600}


def test_none_is_kept_where_none_is_to_be(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", 10, 0)
    file.append(b"aaaaaaaa\n", durable=True)
    file.append(b"bbbbbbbb\n", durable=True)
    assert [each.read_bytes() for each in tmp_path.iterdir()] == [b"bbbbbbbb\n"]


def test_several_that_append_lose_nothing(tmp_path: Path) -> None:
    """As several processes do: each opens the file for itself, and the lock is the file's."""
    lines = [f"{writer} {number}\n".encode() for writer in range(4) for number in range(100)]

    def write(own: list[bytes]) -> None:
        for line in own:
            RotatedFile(tmp_path / "log", 300, 100).append(line)

    threads = [threading.Thread(target=write, args=(lines[at : at + 100],)) for at in range(0, 400, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = [*RotatedFile(tmp_path / "log", 300, 100).files()]
    assert max(each.stat().st_size for each in files) <= 300
    found = b"".join(each.read_bytes() for each in files).splitlines(keepends=True)
    assert sorted(found) == sorted(lines)
    for writer in range(4):
        assert [line for line in found if line.startswith(b"%d " % writer)] == lines[100 * writer : 100 * writer + 100]


def test_who_sets_a_full_file_aside_is_not_always_the_first_to_append_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one that waited for the lock may be, and leave no room in it, or half a line."""
    file, other = RotatedFile(tmp_path / "log", 10, 2), RotatedFile(tmp_path / "log", 10, 2)
    file.append(b"aaaaaa\n")
    set_aside = RotatedFile._set_aside

    def overtaken(self: RotatedFile) -> None:
        monkeypatch.undo()
        set_aside(self)
        other.append(b"bbbbbb\n")

    monkeypatch.setattr(RotatedFile, "_set_aside", overtaken)
    file.append(b"cccccc\n")
    assert [each.read_bytes() for each in file.files()] == [b"aaaaaa\n", b"bbbbbb\n", b"cccccc\n"]


def test_half_a_line_stays_one_by_itself(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"half":')
    RotatedFile(tmp_path / "log", 100, 1).append(b"whole\n")
    assert (tmp_path / "log").read_bytes() == b'{"half":\nwhole\n'


def test_a_file_that_a_program_of_the_machine_moves_is_made_anew(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "log", 100, 1)
    file.append(b"before\n")
    (tmp_path / "log").rename(tmp_path / "moved")
    file.append(b"after\n")
    assert (tmp_path / "log").read_bytes() == b"after\n"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"mine\n")
    (tmp_path / "log").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="log"):
        RotatedFile(tmp_path / "log", 100, 1).append(b"x\n")
    assert (tmp_path / "other").read_bytes() == b"mine\n"

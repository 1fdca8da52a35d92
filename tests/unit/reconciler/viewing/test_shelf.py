"""Which stores of commits are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apiserver.endpoints.commitasking import MARK
from reconciler.viewing.shelf import Shelf, ShelfLimits

MIB = 1024 * 1024


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "kept", ShelfLimits(commits=2, size=5 * MIB))


def put(shelf: Shelf, commit: str, path: str = "root", size: int = 0, used: int = 0) -> Path:
    room = shelf.room()
    (room / "store").write_bytes(b"x" * size)
    kept = shelf._directory / shelf.put(commit, path, room, "", children=False).name
    if used:
        os.utime(kept / MARK, (used, used))
    return kept


def test_the_commit_goes_that_was_read_longest_ago(shelf: Shelf) -> None:
    one, two = put(shelf, "1", used=100), put(shelf, "2", used=50)
    put(shelf, "3")

    assert one.exists() and not two.exists()
    kept = shelf.find("1", "root", children=False)
    assert kept is not None and kept.name == one.name
    assert shelf.find("2", "root", children=False) is None


def test_all_that_is_kept_of_a_commit_goes_with_it(shelf: Shelf) -> None:
    places = [put(shelf, "1", path, used=used) for path, used in (("root", 10), ("root:a", 20))]
    put(shelf, "2", used=30)
    put(shelf, "3")

    assert not any(place.exists() for place in places)


def test_what_is_too_large_goes_the_oldest_first(shelf: Shelf) -> None:
    one = put(shelf, "1", size=3 * MIB, used=10)
    two = put(shelf, "2", size=3 * MIB, used=20)
    assert not one.exists()
    more = [put(shelf, "2", f"root:{n}", size=2 * MIB, used=30 + n) for n in range(2)]
    assert not two.exists(), "of one commit alone its stores go, one by one"
    assert all(place.exists() for place in more)
    alone = put(shelf, "3", size=8 * MIB)
    assert alone.exists(), "what was just filled is answered"


def test_what_is_filled_anew_takes_the_place_of_what_was_there(shelf: Shelf) -> None:
    one, two = put(shelf, "1"), put(shelf, "1")

    assert two.exists() and not one.exists()


def test_it_begins_with_nothing(shelf: Shelf, tmp_path: Path) -> None:
    kept, room = put(shelf, "1"), shelf.room()
    again = Shelf(tmp_path / "kept", ShelfLimits())

    assert not kept.exists() and not room.exists()
    assert again.find("1", "root", children=False) is None
    dropped = again.room()
    again.drop(dropped)
    assert not dropped.exists()

"""Outputs on disk: a cache that is never wrong, whatever becomes of its files, and never too big."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.rendering.outputs import KeptOutputs
from reconciler.rendering.rendering import Rendered

MIB = 1024 * 1024
KEY, OTHER = "ab" * 32, "ab" + "cd" * 31
GOOD, BAD = Rendered(b"a: 1\n" * 1000), Rendered(fault="no \N{SNOWMAN}", hint="do this")


def kept(directory: Path, most: int = 64 * MIB) -> KeptOutputs:
    return KeptOutputs(directory / "outputs", most, 3 * MIB)


def only_file(directory: Path) -> Path:
    (found,) = (path for path in directory.rglob("*") if path.is_file())
    return found


def test_what_is_kept_is_there_for_every_process(tmp_path: Path) -> None:
    one = kept(tmp_path)
    one.put(KEY, GOOD)
    one.put(OTHER, BAD)
    assert kept(tmp_path).get(KEY) == GOOD and kept(tmp_path).get(OTHER) == BAD
    assert one.get("00" * 32) is None


def test_it_is_its_owners_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        kept(tmp_path).put(KEY, GOOD)
    finally:
        os.umask(previous)
    file = only_file(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.parent.parent.stat().st_mode & 0o777 == 0o700


@given(at=st.floats(0, 0.999), how=st.sampled_from(["short", "changed", "empty", "more"]))
def test_what_is_damaged_is_not_there(tmp_path_factory: pytest.TempPathFactory, at: float, how: str) -> None:
    directory = tmp_path_factory.mktemp("kept")
    kept(directory).put(KEY, GOOD)
    file = only_file(directory)
    data = bytearray(file.read_bytes())
    index = int(at * len(data))
    if how == "changed":
        data[index] ^= 0x55
    file.write_bytes({"short": data[:index], "empty": b"", "more": data + b"x"}.get(how, data))
    assert kept(directory).get(KEY) is None
    kept(directory).put(KEY, GOOD)
    assert kept(directory).get(KEY) == GOOD


def test_another_ones_file_is_not_its(tmp_path: Path) -> None:
    one = kept(tmp_path)
    one.put(KEY, GOOD)
    only_file(tmp_path).rename(tmp_path / "outputs" / OTHER[:2] / OTHER[2:])
    assert one.get(OTHER) is None and one.get(KEY) is None


def test_what_was_used_least_lately_goes_first(tmp_path: Path) -> None:
    one, keys = kept(tmp_path, 40 * 4096), [f"{n:02x}" * 32 for n in range(60)]
    now = time.time()
    for number, key in enumerate(keys):
        one.put(key, GOOD)
        os.utime(tmp_path / "outputs" / key[:2] / key[2:], (now - 7200 + number, now - 7200 + number))
        one.get(keys[0])
    size = sum(max(path.stat().st_size, 4096) for path in tmp_path.rglob("*") if path.is_file())
    assert size <= 40 * 4096
    assert one.get(keys[0]) == one.get(keys[-1]) == GOOD
    assert one.get(keys[1]) is None


def test_a_process_that_comes_later_counts_what_is_there(tmp_path: Path) -> None:
    for number in range(30):
        kept(tmp_path, 10 * 4096).put(f"{number:02x}" * 32, GOOD)
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) <= 10


def test_without_room_nothing_is_kept_and_nothing_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "outputs").write_text("")
    one = kept(tmp_path)
    one.put(KEY, GOOD)
    one.put(KEY, GOOD)
    assert one.get(KEY) is None
    assert len(caplog.records) == 1


def test_many_write_the_same(tmp_path: Path) -> None:
    threads = [threading.Thread(target=lambda: kept(tmp_path).put(KEY, GOOD)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept(tmp_path).get(KEY) == GOOD
    only_file(tmp_path)

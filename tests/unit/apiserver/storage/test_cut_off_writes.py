"""What is told of a write to the store that the system cut off."""

from __future__ import annotations

import errno
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from apiserver.storage import lmdb_writer

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("code", "free", "full"),
    [
        (errno.ENOSPC, 1 << 40, True),
        (errno.EDQUOT, 1 << 40, True),
        (errno.EIO, 4096, True),
        (errno.EIO, 1 << 30, False),
        (errno.EINVAL, 0, False),
        (None, 0, False),
    ],
)
def test_the_disk_is_full_where_the_system_says_so_or_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None, free: int, full: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, free))
    assert lmdb_writer._is_of_disk(code, tmp_path) == full

"""The disk of the machine that tests run on, which `treeplane status` looks at: as if there were room, or whether."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apiserver.complaints import machine


@contextmanager
def plenty() -> Iterator[None]:
    """Nothing is said of the disk, however full it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "_disk", lambda _: iter(()))
        yield


def is_little(directory: Path) -> bool:
    """Whether something would be said of it."""
    return any(True for _ in machine._disk(directory))

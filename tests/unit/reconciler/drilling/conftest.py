"""A small fleet that is recorded, and drills of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loadedfleet import LoadedFleet


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[LoadedFleet]:
    """Nothing committed, nothing loaded."""
    made = LoadedFleet(tmp_path / "fleet")
    yield made
    made.close()


@pytest.fixture
def fleet(empty: LoadedFleet) -> LoadedFleet:
    """The workspaces root, root:a and root:b, loaded and recorded."""
    empty.begin()
    empty.publish()
    return empty

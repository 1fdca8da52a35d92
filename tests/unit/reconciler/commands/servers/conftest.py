from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serverworlds import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Three servers that are far from their source."""
    made = World(tmp_path, remote=True, servers=3)
    yield made
    made.close()

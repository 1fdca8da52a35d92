from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loadedfleet import LoadedFleet
from support.manyobjects import MANY


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    """A fleet with MANY objects in root:a, loaded."""
    made = LoadedFleet(tmp_path / "fleet")
    made.begin(MANY)
    yield made
    made.close()

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loadedfleet import LoadedFleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    """A fleet with root, root:a and root:b, loaded and recorded."""
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    made.publish()
    yield made
    made.close()

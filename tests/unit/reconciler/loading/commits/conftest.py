"""A fleet whose writes are commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[CommitFleet]:
    """root, root:a and root:b with the ConfigMap `app` each; nobody serves."""
    made = CommitFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": WRITES_COMMIT})
    yield made
    made.close()


@pytest.fixture
def fleet(idle: CommitFleet) -> CommitFleet:
    """The same, and served."""
    idle.serve()
    return idle

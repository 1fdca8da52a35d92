"""A fleet whose writes are proposals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.proposalfleet import WRITES_PROPOSE, ProposalFleet


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[ProposalFleet]:
    """root, root:a and root:b with the ConfigMap `app` each; nobody serves."""
    made = ProposalFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": WRITES_PROPOSE})
    yield made
    made.close()


@pytest.fixture
def fleet(idle: ProposalFleet) -> ProposalFleet:
    """The same, and served."""
    idle.serve()
    return idle

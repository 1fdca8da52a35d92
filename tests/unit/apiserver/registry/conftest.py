"""A store in memory that counts."""

from __future__ import annotations

import pytest
from support.memorystore import CountingStore


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()

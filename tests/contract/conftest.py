"""The store implementations that the contract suite runs over. A new one is one more entry of IMPLEMENTATIONS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.storage.declared import Declared
from apiserver.storage.lmdb import open_store
from apiserver.storage.memory import Memory, MemoryStore
from apiserver.storage.protocol import Store

Opener = Callable[..., Store]
"""Opens the store in a directory: keywords `declared`, `sync`, `start` as open_store has them."""

_MEMORIES: dict[Path, Memory] = {}


def open_memory(directory: Path, *, sync: bool = True, start: int | None = None, **options: Declared) -> Store:
    """What a directory holds lasts as long as these tests."""
    return MemoryStore(_MEMORIES.setdefault(directory, Memory()), start=start, **options)


IMPLEMENTATIONS: dict[str, Opener] = {"lmdb": open_store, "memory": open_memory}


@pytest.fixture(scope="session", params=sorted(IMPLEMENTATIONS))
def implementation(request: pytest.FixtureRequest) -> Opener:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
def opened(implementation: Opener, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    """Opens stores under tmp_path (by default `store`), and closes what is left open."""
    stores: list[Store] = []

    def open_one(name: str = "store", **options: Any) -> Store:
        stores.append(implementation(tmp_path / name, **{"sync": False, **options}))
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened()

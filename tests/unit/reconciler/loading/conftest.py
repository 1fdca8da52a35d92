"""A small fleet in a real repository and a store that loads it, commit by commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """The workspaces root, root:a and root:b are loaded, each with the ConfigMap `app`."""
    empty.begin()
    return empty


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Callable[..., LoadedFleet]]:
    """A factory of further stores over a fleet's repository: `another(fleet, "second")`."""
    made: list[LoadedFleet] = []

    def open_another(fleet: LoadedFleet, name: str = "second", *, keys: Path | None = None) -> LoadedFleet:
        new = LoadedFleet(tmp_path / name, repo=fleet.repo, keys=keys, renders=fleet.renders)
        made.append(new)
        return new

    yield open_another
    for each in made:
        each.close()

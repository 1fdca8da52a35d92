"""What is said of targets while a server ends starts nothing that would outlive it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.syncedfleet import SyncedFleet

from reconciler.controllers.targets import Kubeconfig
from reconciler.syncing.service import Syncing


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SyncedFleet]:
    made = SyncedFleet(tmp_path / "f")
    made.begin()
    yield made
    made.close()


@pytest.fixture
def service(fleet: SyncedFleet, eventually: Callable[..., object]) -> Syncing:
    """With two targets that are synced to."""
    found = fleet.syncing
    assert found is not None
    eventually(lambda: len(found.syncers()) == 2)
    return found


def threads() -> list[str]:
    """Those that sync, or end it."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("sync-", "stop-"))]


def test_a_target_that_is_connected_while_the_service_ends_is_left_alone(fleet: SyncedFleet, service: Syncing) -> None:
    key, before = min(service.syncers()), service.syncers()
    target = service._index.get(key)
    assert target is not None
    fleet.stop()
    service._told(key, target, service._connect(Kubeconfig(target["metadata"]["name"].encode())))
    assert (service.syncers(), threads()) == (before, [])


def test_what_a_target_was_let_go_of_with_has_ended_with_the_service(fleet: SyncedFleet, service: Syncing) -> None:
    key = min(service.syncers())
    service._told(key, None, None)
    assert key not in service.syncers()
    fleet.stop()
    assert threads() == []

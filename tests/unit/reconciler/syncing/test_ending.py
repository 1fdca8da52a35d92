"""What is said of targets while a server ends starts nothing that would outlive it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from support.syncedfleet import SyncedFleet

from reconciler.controllers.targets import Kubeconfig


def test_a_target_that_is_connected_while_the_service_ends_is_left_alone(
    tmp_path: Path, eventually: Callable[..., object]
) -> None:
    fleet = SyncedFleet(tmp_path / "f")
    fleet.begin()
    service = fleet.syncing
    assert service is not None
    eventually(lambda: len(service.syncers()) == 2)
    key = min(service.syncers())
    target = service._index.get(key)
    assert target is not None
    before = service.syncers()
    fleet.stop()
    service._told(key, target, service._connect(Kubeconfig(target["metadata"]["name"].encode())))
    assert service.syncers() == before
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith(("sync-", "stop-", "boot-"))]
    assert left == []
    fleet.close()


def test_what_a_target_was_let_go_of_with_has_ended_with_the_service(
    tmp_path: Path, eventually: Callable[..., object]
) -> None:
    fleet = SyncedFleet(tmp_path / "f")
    fleet.begin()
    service = fleet.syncing
    assert service is not None
    eventually(lambda: len(service.syncers()) == 2)
    key = min(service.syncers())
    service._told(key, None, None)
    assert key not in service.syncers()
    fleet.stop()
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith(("sync-", "stop-", "boot-"))]
    assert left == []
    fleet.close()

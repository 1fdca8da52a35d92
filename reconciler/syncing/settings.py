"""Settings of syncing, with their defaults. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.controllers.settings import TargetSettings
from reconciler.syncing.client import ClientSettings
from reconciler.syncing.lease import LeaseSettings
from reconciler.syncing.watcher import Pace


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """`threads`: parallel requests to one target. `grace`: how long an empty downstream namespace stays. `settle`: how
    long after the last change of a namespace the commit is noted in its inventory. `first_list`: how long to wait for a
    target's first list of a kind. `report`: how long failures are collected before a condition tells of them. `again`:
    until what waits for something elsewhere is looked at again. `discovery`: how long at least between two questions to
    a target whether it serves a kind by now. `pace`: of what a target is asked and says."""

    threads: int = 4
    grace: float = 30.0
    settle: float = 1.0
    first_list: float = 15.0
    report: float = 0.3
    discovery: float = 5.0
    again: float = 1.0
    targets: TargetSettings = field(default_factory=TargetSettings)
    client: ClientSettings = field(default_factory=ClientSettings)
    pace: Pace = field(default_factory=Pace)
    lease: LeaseSettings = field(default_factory=LeaseSettings)

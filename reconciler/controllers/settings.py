"""Settings of the loops around sync targets, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """All in seconds.

    `heartbeat`: between two looks at a target; `again`: while it does not answer. `threshold`: without an answer for
    this long it is not Ready. `tolerance`: not Ready for this long it loses its placements to another candidate.
    `discovery`: between two looks at which kinds it serves. `credentials`: between two looks for missing ones (a change
    of the Secret is noticed at once).
    """

    heartbeat: float = 20.0
    again: float = 2.0
    threshold: float = 60.0
    tolerance: float = 300.0
    discovery: float = 600.0
    credentials: float = 20.0


@dataclass(frozen=True, slots=True)
class HousekeepingSettings:
    """`events`: seconds that an Event stays after it was last written. `history`: seconds that past states are kept at
    least (history.py); 0: as long as the store has room for them. `lingers`: seconds that a namespace which is deleted
    stays at least, empty or not; kube-controller-manager gives it five, and clients ask once more for what they delete.
    """

    events: float = 3600.0
    history: float = 0.0
    lingers: float = 0.0

"""What whoever runs the server says of tenants' repositories, as the room sourcing takes it.

Called by whoever makes the follower and says what is followed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from apiserver.model import paths
from reconciler.commands.settings import Reconciling
from reconciler.sourcing import settings as sourcing
from reconciler.sourcing.settings import FollowSettings

_WRITE, _SELDOM, _SLOTS = 60.0, 3600.0, 4
"""Seconds that one status may take to be written, and at most between two tries; how many are written at a time."""


class SourceTrust(NamedTuple):
    """Of one workspace's source: see FollowedSource, whose fields these are."""

    trusted: bool
    remedy: str


def follow_settings(settings: Reconciling) -> FollowSettings:
    bounds = replace(sourcing.DEFAULT.bounds, disk=settings.source_mib * 1024 * 1024)
    together = settings.sources_mib * 1024 * 1024
    return replace(sourcing.DEFAULT, interval=settings.source_interval, bounds=bounds, together=together)


def excerpt_settings(settings: Reconciling) -> FollowSettings:
    """Of what is written there: as often as they are looked at, and where that is refused, every hour at last."""
    interval, bounds = settings.source_interval, replace(sourcing.DEFAULT.bounds, visit=_WRITE)
    longest = max(_SELDOM, interval)
    return replace(sourcing.DEFAULT, interval=interval, least=interval, longest=longest, slots=_SLOTS, bounds=bounds)


def trust(settings: Reconciling, path: str) -> SourceTrust:
    """Of the workspace with that path: trusted where it, or one above it, is."""
    trusted = any(paths.is_within(path, top) for top in settings.trusted_sources)
    remedy = f"an administrator lifts this check for {path} with `treeplane up --trust-sources {path}`"
    return SourceTrust(trusted, "" if trusted else remedy)

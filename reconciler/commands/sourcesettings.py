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


class SourceTrust(NamedTuple):
    """Of one workspace's source: see FollowedSource, whose fields these are."""

    trusted: bool
    remedy: str


def follow_settings(settings: Reconciling) -> FollowSettings:
    bounds = replace(sourcing.DEFAULT.bounds, disk=settings.source_mib * 1024 * 1024)
    together = settings.sources_mib * 1024 * 1024
    return replace(sourcing.DEFAULT, interval=settings.source_interval, bounds=bounds, together=together)


def trust(settings: Reconciling, path: str) -> SourceTrust:
    """Of the workspace with that path: trusted where it, or one above it, is."""
    trusted = any(paths.is_within(path, top) for top in settings.trusted_sources)
    remedy = f"an administrator lifts this check for {path} with `treeplane up --trust-sources {path}`"
    return SourceTrust(trusted, "" if trusted else remedy)

"""Whom the server's settings name to be told of commits, and whether they can be.

Called by `up`, which refuses what cannot be before anything starts, and by announcing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.commands.settings import Reconciling
from reconciler.forges.address import checked as checked_url
from reconciler.forges.errors import NotSaid

if TYPE_CHECKING:
    from reconciler.forges.place import StatusPlace


def checked(settings: Reconciling) -> None:
    """Raises NotSaid for settings that cannot be."""
    if settings.forge:
        place_of(settings)
    elif settings.forge_url or settings.forge_repository or settings.forge_target_url:
        raise NotSaid("which forge is it?", "say --forge github, gitlab or gitea")
    if settings.notify_url:
        checked_url(settings.notify_url)


def place_of(settings: Reconciling) -> StatusPlace:
    """Raises NotSaid."""
    if not settings.forge_repository:
        raise NotSaid("which repository of the forge is it?", "say --forge-repository owner/name")
    from reconciler.forges.place import StatusPlace  # noqa: PLC0415 - it speaks HTTP, and few starts are told of one

    return StatusPlace(settings.forge or "", settings.forge_url, settings.forge_repository)

"""What both kinds of server stand on: the one that holds its repository, and the one that observes it."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.storage.protocol import Store
from reconciler.commands.lookout import Lookout
from reconciler.commands.roles import Handles, Roles
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.teller import Teller
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.mirror import Mirror


@dataclass(frozen=True, slots=True)
class Station:
    """Of one run of the reconciler's process. The store is open, its roles are taken. `renders`: for directories that
    are rendered."""

    settings: ReconcileSettings
    handles: Handles
    mirror: Mirror
    lookout: Lookout
    teller: Teller
    roles: Roles
    renders: Renders = NOWHERE

    @property
    def store(self) -> Store:
        """As who loads writes to it."""
        return self.handles.loading

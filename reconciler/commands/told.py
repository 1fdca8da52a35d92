"""How `up` tells the processes that it starts what they have to know. Imports nothing, for one that is small."""

from __future__ import annotations

SETTINGS = "TREEPLANE_RECONCILE"
"""The environment variable that holds their settings, as JSON."""

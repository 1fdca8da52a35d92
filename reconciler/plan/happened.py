"""What may happen to an object that people are told of: the reasons of Events, and of lines of `up`.

Apart from notices.py, which finds out what happened: `up` prints these and knows nothing of objects.
"""

from __future__ import annotations

HELD, MENDED = "Held", "Mended"
PLACED, MOVED, UNPLACED = "Placed", "Moved", "Unplaced"
SYNCED, SYNC_FAILED = "Synced", "SyncFailed"
TARGET_LOST, TARGET_BACK = "TargetLost", "TargetBack"
FOLLOWED = "FleetFollowed"
OBJECTS_DELETED, WORKSPACES_DELETED = "ObjectsDeleted", "WorkspacesDeleted"
REFUSED, TAKEN, DRIFT = "CopyRefused", "CopyTaken", "DriftPutRight"

"""All that is wrong now: of the fleet, or of one workspace. The way into this room.

Called by the endpoint /status (endpoints/statuses), and by `treeplane status --data-dir` on the same store.
"""

from __future__ import annotations

import time
from itertools import chain

from apiserver.complaints.clusters import of_cluster, of_clusters
from apiserver.complaints.complaint import Complaints, together
from apiserver.complaints.fleet import of_fleet
from apiserver.complaints.machine import MachinePlace, of_machine
from apiserver.complaints.workspaces import of_workspace, of_workspaces
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import View

NOT_FLEET = "the fleet as a whole, other workspaces, the server's disk and certificates"


def gather(view: View, place: MachinePlace) -> Complaints:
    """Of the whole fleet, and of the machine that serves it. It costs what is wrong, and a look at each sync target."""
    now = time.time()
    found = list(chain(of_fleet(view, now), of_machine(place, now), of_workspaces(view), of_clusters(view, now)))
    listed, more = together(found)
    return Complaints(listed, more, (), tree.count(view), str(tree.fleet(view).commit))


def gather_in(view: View, record: WorkspaceRecord) -> Complaints:
    """Of one workspace, for whom no more than that is to be told."""
    listed, more = together([*of_workspace(view, record), *of_cluster(view, record.cluster, time.time())])
    return Complaints(listed, more, (NOT_FLEET,), 0, str(record.commit))

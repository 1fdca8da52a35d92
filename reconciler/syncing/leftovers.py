"""What stands on a target under identities that this fleet has no more: reported, never touched.

Asked after a fleet began with new identities (see commands/leftovers): its sync targets are called otherwise since, so
what was applied before carries another target's label. That it is this fleet's is told by the commit which its
inventory names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from apiserver.registry.names import dns_label
from reconciler.syncing import inventory
from reconciler.syncing.client import TargetClient, path
from reconciler.syncing.render import CLUSTER_LABEL
from reconciler.syncing.site import CONFIG_MAPS


class Leftover(NamedTuple):
    """A namespace on the target, and the workspace and commit of what was applied there last."""

    namespace: str
    workspace: str
    commit: CommitRef


def leftovers(client: TargetClient, key: str, known: Callable[[CommitRef], bool]) -> list[Leftover]:
    """Those on one target. `key`: what the target is called in labels by now; `known`: whether a commit is one of the
    fleet's repository. Raises what the client raises."""
    found = []
    for page in client.list(path(CONFIG_MAPS, "v1"), f"{CLUSTER_LABEL},{CLUSTER_LABEL}!={key}"):
        for live in page.items:
            held = inventory.read(live)
            namespace = live["metadata"]["namespace"]
            # The name is going to stand in a command: a target that is not what it seems may say anything.
            if held is not None and held.commit and known(held.commit) and not dns_label(namespace):
                found.append(Leftover(namespace, held.workspace, held.commit))
    return sorted(found)

"""What every workspace has without declaring it: the namespace `default`, its LogicalCluster, its Workspace object.

Rendered at load into the same transaction as the workspace's own objects, with times and identities of the workspace's
origin, so that a recovered fleet has the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from apiserver.model import paths
from apiserver.model.conditions import condition
from apiserver.model.identity import base62_sha224
from apiserver.model.marks import ORIGIN, PATH, SYSTEM, TYPE
from apiserver.registry import pins, shards
from apiserver.registry.lifecycles import INITIALIZED, not_initialized
from apiserver.registry.permissionclaims import accepted_by_default

Object = dict[str, Any]

TENANCY = "tenancy.kcp.io/v1alpha1"
CORE = "core.kcp.io/v1alpha1"

COMMIT_APPLIED = pins.APPLIED
"""The condition of a Workspace and a LogicalCluster that says whether what a commit has of them is served."""
SECRETS_LOCKED = "SecretsLocked"
"""Its reason where all is served but what is encrypted for others."""
READY, INACTIVE, UNAVAILABLE = "Ready", "Inactive", "Unavailable"
"""Phases of a workspace that is served."""
FLEET_FOLLOWED = "FleetFollowed"
"""A condition of root's LogicalCluster that follows from no commit (controllers/fleetcondition)."""
SOURCE_FOLLOWED = "SourceFollowed"
"""One of a workspace whose content comes from another repository: whether that is followed (controllers/
sourcecondition)."""
SOURCE_STATUS_WRITTEN = "SourceStatusWritten"
"""The same of whether its status is written there."""
OF_SOURCES = frozenset({SOURCE_FOLLOWED, SOURCE_STATUS_WRITTEN})
CONDITIONS = frozenset({"CommitApplied", "WorkspaceInitialized", "WorkspaceScheduled"})
"""The conditions that are computed of every workspace."""


class WorkspaceFacts(NamedTuple):
    """What the objects of a workspace are computed from.

    `origin_time`: when it came, RFC 3339. `type_name` and `type_path` name its WorkspaceType. `problems`: why
    the newest commit is held back ([] if it is not). `parent_cluster`: the parent's logical cluster name ("" for root).
    `shard`: the Shard that it is on, shards.NONE if none takes it. `said`: annotations that its workspace.yaml says for
    its LogicalCluster. `inactive`: it is marked so. `unavailable`: it is a mount of what is not ready. `initializers`,
    `terminators`: names of the programs whose turn is still to come; all that it ever had, as long as none of them has
    said that it is done. `pinned`: how its content is pinned, in words, "" if it is not; `source`: where it comes from
    instead of its directory; `sourced`: whether it has another repository for that, or is to have one. `locked`:
    Secrets that stay as they are, since nobody here can read what git says of them, and why. `since`: by type since
    when conditions are what they are, if not since it came.
    """

    path: str
    cluster: str
    type_name: str
    type_path: str
    origin_time: str
    problems: tuple[str, ...] = ()
    served: bool = True
    parent_cluster: str = ""
    shard: str = shards.USUAL
    said: tuple[tuple[str, str], ...] = ()
    inactive: bool = False
    unavailable: bool = False
    initializers: tuple[str, ...] = ()
    terminators: tuple[str, ...] = ()
    pinned: str = ""
    source: str = ""
    sourced: bool = False
    locked: tuple[str, ...] = ()
    since: Mapping[str, str] = MappingProxyType({})

    def waiting(self) -> Object:
        """What spec and status say of these. Nothing is waited for before there is anything to act on."""
        found = {"initializers": [*self.initializers], "terminators": [*self.terminators]} if self.served else {}
        return {name: names for name, names in found.items() if names}


def default_namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


def logical_cluster(facts: WorkspaceFacts) -> Object:
    """core.kcp.io/v1alpha1 LogicalCluster `cluster`; its status is `status`."""
    parent = paths.parent(facts.path)
    spec: Object = {"directlyDeletable": False, **facts.waiting()}
    if parent is not None:
        spec["owner"] = {
            "apiVersion": TENANCY,
            "resource": "workspaces",
            "name": paths.base(facts.path),
            "cluster": facts.parent_cluster,
        }
    return {
        "apiVersion": CORE,
        "kind": "LogicalCluster",
        "metadata": {
            "name": "cluster",
            "annotations": {
                PATH: facts.path,
                TYPE: f"{facts.type_path}:{facts.type_name}",
                ORIGIN: SYSTEM,
                **shards.cluster_annotations(facts.shard),
                **dict(facts.said),
            },
        },
        "spec": spec,
    }


def status(facts: WorkspaceFacts) -> Object:
    """The status of the Workspace object in the parent, and of the LogicalCluster, as far as it follows from commits:
    what runtime decides is laid over it (runtimestatus)."""
    return {"phase": phase(facts), "conditions": conditions(facts), **facts.waiting()}


def phase(facts: WorkspaceFacts) -> str:
    if facts.shard == shards.NONE:
        return "Scheduling"
    if not facts.served or facts.initializers:
        return "Initializing"
    if facts.unavailable:
        return UNAVAILABLE
    return INACTIVE if facts.inactive else READY


def conditions(facts: WorkspaceFacts) -> list[Object]:
    """kcp's conditions, and `CommitApplied`: whether all that was judged of the workspace is served, with the errors.
    A commit that is held as a whole was not judged: that is the fleet's matter."""
    told = _conditions(facts)
    return [{**each, "lastTransitionTime": facts.since.get(each["type"], facts.origin_time)} for each in told]


def _conditions(facts: WorkspaceFacts) -> list[Object]:
    if facts.problems:
        text = "held back at the last good commit: " if facts.served else "never had a good commit: "
        text = f"{pins.HELD} {facts.pinned}: " if facts.pinned else text
        applied = condition(COMMIT_APPLIED, False, "ContentInvalid", text + "; ".join(facts.problems))
    elif facts.pinned:
        text = f"pinned {facts.pinned}: what other commits have of its own content is not served"
        applied = condition(COMMIT_APPLIED, True, pins.PINNED, "; ".join((text, *facts.locked)))
    elif facts.locked:
        text = "all but what is encrypted for others is served: "
        applied = condition(COMMIT_APPLIED, True, SECRETS_LOCKED, text + "; ".join(facts.locked))
    else:
        text = f", from {facts.source}" if facts.source else ""
        applied = condition(COMMIT_APPLIED, True, "Applied", f"all that was judged of it is served{text}")
    if facts.shard == shards.NONE:
        text = "no Shard takes the workspace: see CommitApplied"
        return [applied, condition("WorkspaceScheduled", False, "Unschedulable", text)]
    scheduled = condition("WorkspaceScheduled", True, "Scheduled", "a logical cluster is assigned")
    initialized = condition(INITIALIZED, facts.served, "Loaded" if facts.served else "ContentInvalid")
    if facts.served and facts.initializers:
        initialized = not_initialized(facts.initializers, "")
    return [applied, initialized, scheduled]


def default_binding_name(cluster: str, export_path: str, export: str) -> str:
    """The name kcp gives to a binding that a workspace type brings: `<export>-` and five characters of a hash."""
    return f"{export}-{base62_sha224('|'.join((cluster, export_path, export)))[:5].lower()}"


def default_binding(cluster: str, export_path: str, export: str, asked: Sequence[Object] = ()) -> Object:
    """`asked`: the export's permission claims, which it accepts."""
    return {
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": {
            "name": default_binding_name(cluster, export_path, export),
            "annotations": {ORIGIN: SYSTEM},
        },
        "spec": {
            "reference": {"export": {"path": export_path, "name": export}},
            "permissionClaims": accepted_by_default(asked),
        },
    }

"""Annotations and labels that Treeplane sets, the field managers it uses, and how an origin looks in the store. One
list, so that none is misspelled."""

from __future__ import annotations

SOURCE_PATH = "treeplane.dev/source-path"
"""The file of the repository that declares the object."""
SOURCE_COMMIT = "treeplane.dev/source-commit"
"""The commit that last changed the object's content."""
ORIGIN = "treeplane.dev/origin"
"""`runtime`: created through the API or by a controller; `system`: ships with Treeplane; `removed`: a commit took it
away, and it waits for its finalizers; absent: declared by git."""
RUNTIME = "runtime"
SYSTEM = "system"
REMOVED = "removed"
COMMIT_LABEL = "treeplane.dev/commit"

CLUSTER = "kcp.io/cluster"
"""Logical cluster name, on every object served."""
PATH = "kcp.io/path"
SHARD = "core.kcp.io/shard"
"""On a Workspace and a LogicalCluster: the Shard that the workspace is on."""
SHARD_HASH = "internal.tenancy.kcp.io/shard"
"""On a Workspace: a digest of the Shard's name."""
LOGICAL_CLUSTER = "internal.tenancy.kcp.io/cluster"
"""On a Workspace: its logical cluster name."""
TYPE = "internal.tenancy.kcp.io/type"
"""On a LogicalCluster: the workspace's type."""
REQUIRED_GROUPS = "authorization.kcp.io/required-groups"
"""On a LogicalCluster: the groups without which nobody gets in, nor into what is below."""
INACTIVE = "core.kcp.io/inactive"
"""On a LogicalCluster, "true": the workspace answers nothing for the time being."""
MOST_OBJECTS = "core.kcp.io/max-total-objects"
"""On a LogicalCluster: how many objects the workspace may have."""
PLACES = (SHARD, SHARD_HASH, LOGICAL_CLUSTER)
"""What says where a workspace is: its summary knows."""

OWNER = "experimental.tenancy.kcp.io/owner"
"""On a Workspace and its LogicalCluster, where it was made through the API: who made it, as JSON."""
WORKSPACE_FINALIZER = "core.kcp.io/logicalcluster"
"""Of a Workspace: what is in the workspace goes first."""
CLUSTER_FINALIZER = "core.kcp.io/logicalcluster-deletion"
"""The same of a LogicalCluster."""

BINDING_FINALIZER = "apis.kcp.io/apibinding-finalizer"
"""Of an APIBinding that is bound: what its kinds have in the workspace goes first. Stored once it is being deleted;
until then clients are told of it (registry/boundresources)."""
DEFINITION_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""The same of a CustomResourceDefinition; nobody is told of it before."""
FINALIZERS = (WORKSPACE_FINALIZER, CLUSTER_FINALIZER, BINDING_FINALIZER, DEFINITION_FINALIZER)
"""Those that the server sets by itself, on what is being deleted, and takes away."""

NO_SLICE = "apiexports.apis.kcp.io/skip-endpointslice"
"""On an APIExport: it gets no endpoint slice by itself."""

TARGET_KEY = "internal.workload.kcp.io/key"
"""Label on a SyncTarget: the key by which everything else names it."""

SYNC_TARGET = "internal.workload.kcp.io/synctarget"
"""On a Placement: the key of the sync target decided on."""
LEAVING = "treeplane.dev/leaving"
"""On a Placement: keys (comma-separated) of the targets that a move left and that still hold copies."""
DECIDED_FROM = "treeplane.dev/decided-from"
"""On a Placement: what of its own spec the decision was made from."""
NOTHING_NEW = "treeplane.dev/nothing-new"
"""On a Placement, "true": its workspace may not use the cluster any more on which it runs. What has a copy there keeps
it, nothing else comes."""
RUNS_ON = "treeplane.dev/runs-on"
"""On a Namespace: keys (comma-separated) of the sync targets that have copies of it, or may still have."""
DECISIONS = (SYNC_TARGET, LEAVING, DECIDED_FROM, NOTHING_NEW, RUNS_ON)
"""What controllers alone say: whoever could write it would choose a cluster that is not theirs."""

MAY_LEAVE = "treeplane.dev/may-leave"
"""On a Placement, by its owner: the sync target (`root:infra:eu-west`) that its namespaces may leave although they hold
state. It says nothing of any other target."""

FIELD_MANAGER = "treeplane"


def as_stored(origin: str) -> bytes:
    """What the bytes of an object hold that has this origin, so that it is found without being decoded."""
    return f'"{ORIGIN}":"{origin}"'.encode()

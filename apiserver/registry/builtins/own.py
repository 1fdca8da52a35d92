"""Kinds of kcp, which Treeplane serves from definitions of its own."""

from __future__ import annotations

from apiserver.registry import names
from apiserver.registry.behaviours import own as rules_own
from apiserver.registry.builtins import conditiontypes, unsupported
from apiserver.registry.builtins.entry import BuiltinKind
from apiserver.registry.printers import own as cells

KINDS = (
    BuiltinKind(
        "LogicalCluster",
        "logicalclusters.core.kcp.io",
        behaviour=rules_own.LOGICAL_CLUSTER,
        generation=True,
        everywhere=True,
        from_commits=True,
        computed_status=True,
        servers_status=True,
        by_directory="every workspace has one",
        conditions=conditiontypes.LOGICAL_CLUSTER,
    ),
    BuiltinKind(
        "Shard",
        "shards.core.kcp.io",
        generation=True,
        in_root=True,
        filled=True,
        from_commits=True,
        offered=True,
    ),
    BuiltinKind(
        "Location",
        "locations.scheduling.kcp.io",
        behaviour=rules_own.LOCATION,
        generation=True,
        export="scheduling.kcp.io",
        unsupported=unsupported.LOCATION,
        conditions=conditiontypes.LOCATION,
    ),
    BuiltinKind(
        "Placement",
        "placements.scheduling.kcp.io",
        behaviour=rules_own.PLACEMENT,
        generation=True,
        export="scheduling.kcp.io",
        cells={"Synced": cells.on_target, "Why": cells.why},
        conditions=conditiontypes.PLACEMENT,
    ),
    BuiltinKind(
        "Workspace",
        "workspaces.tenancy.kcp.io",
        behaviour=rules_own.WORKSPACE,
        names=names.dns_label,
        generation=True,
        everywhere=True,
        cells={"Commit": cells.commit, "Pinned": cells.pinned, "Held": cells.held},
        filled=True,
        computed_status=True,
        servers_status=True,
        by_directory="a directory with a workspace.yaml is a workspace",
        conditions=conditiontypes.WORKSPACE,
    ),
    BuiltinKind(
        "WorkspaceType",
        "workspacetypes.tenancy.kcp.io",
        behaviour=rules_own.WORKSPACE_TYPE,
        filled=True,
        generation=True,
        everywhere=True,
        computed_status=True,
        servers_status=True,
        administered_status=True,
        offered=True,
        unsupported=unsupported.WORKSPACE_TYPE,
        conditions=conditiontypes.WORKSPACE_TYPE,
    ),
    BuiltinKind(
        "Partition",
        "partitions.topology.kcp.io",
        behaviour=rules_own.PARTITION,
        generation=True,
        everywhere=True,
    ),
    BuiltinKind(
        "PartitionSet",
        "partitionsets.topology.kcp.io",
        behaviour=rules_own.PARTITION_SET,
        generation=True,
        everywhere=True,
        conditions=conditiontypes.PARTITION_SET,
    ),
    BuiltinKind(
        "SyncTarget",
        "synctargets.workload.kcp.io",
        behaviour=rules_own.SYNC_TARGET,
        generation=True,
        export="workload.kcp.io",
        cells={"Synced API resources": cells.synced},
        unsupported=unsupported.SYNC_TARGET,
        conditions=conditiontypes.SYNC_TARGET,
    ),
)

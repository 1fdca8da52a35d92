"""Kinds of kcp, which Treeplane serves from definitions of its own."""

from __future__ import annotations

from apiserver.registry import names
from apiserver.registry.behaviours import definitions as rules_definitions
from apiserver.registry.behaviours import own as rules_own
from apiserver.registry.builtins import unsupported
from apiserver.registry.builtins.entry import BuiltinKind
from apiserver.registry.printers import own as cells

KINDS = (
    BuiltinKind(
        "APIBinding",
        "apibindings.apis.kcp.io",
        behaviour=rules_own.API_BINDING,
        generation=True,
        everywhere=True,
        from_commits=True,
        computed_status=True,
        defines_kinds=True,
        unsupported=unsupported.API_BINDING,
    ),
    BuiltinKind(
        "APIExport",
        "apiexports.apis.kcp.io",
        behaviour=rules_own.API_EXPORT,
        generation=True,
        everywhere=True,
        from_commits=True,
        computed_status=True,
        defines_kinds=True,
        offered=True,
        unsupported=unsupported.API_EXPORT,
    ),
    BuiltinKind(
        "APIResourceSchema",
        "apiresourceschemas.apis.kcp.io",
        behaviour=rules_definitions.API_RESOURCE_SCHEMA,
        generation=True,
        everywhere=True,
        from_commits=True,
        defines_kinds=True,
        offered=True,
    ),
    BuiltinKind(
        "LogicalCluster",
        "logicalclusters.core.kcp.io",
        generation=True,
        everywhere=True,
        from_commits=True,
        computed_status=True,
        residue=False,
        by_directory="every workspace has one",
    ),
    BuiltinKind(
        "Location",
        "locations.scheduling.kcp.io",
        behaviour=rules_own.LOCATION,
        generation=True,
        everywhere=True,
        unsupported=unsupported.LOCATION,
    ),
    BuiltinKind(
        "Placement",
        "placements.scheduling.kcp.io",
        behaviour=rules_own.PLACEMENT,
        generation=True,
        everywhere=True,
        cells={"Why": cells.why},
    ),
    BuiltinKind(
        "Workspace",
        "workspaces.tenancy.kcp.io",
        behaviour=rules_own.WORKSPACE,
        names=names.dns_label,
        generation=True,
        everywhere=True,
        cells={"Commit": cells.commit},
        from_commits=True,
        computed_status=True,
        by_directory="a directory with a workspace.yaml is a workspace",
    ),
    BuiltinKind(
        "WorkspaceType",
        "workspacetypes.tenancy.kcp.io",
        generation=True,
        everywhere=True,
        from_commits=True,
        computed_status=True,
        offered=True,
        unsupported=unsupported.WORKSPACE_TYPE,
    ),
    BuiltinKind(
        "SyncTarget",
        "synctargets.workload.kcp.io",
        behaviour=rules_own.SYNC_TARGET,
        generation=True,
        everywhere=True,
        cells={"Synced API resources": cells.synced},
        unsupported=unsupported.SYNC_TARGET,
    ),
)

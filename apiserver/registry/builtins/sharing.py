"""Kinds of kcp by which workspaces offer APIs to each other, and take them."""

from __future__ import annotations

from apiserver.registry import apiversions
from apiserver.registry.behaviours import definitions as rules_definitions
from apiserver.registry.behaviours import sharing as rules
from apiserver.registry.builtins import access, conditiontypes, control, core, own
from apiserver.registry.builtins.entry import BuiltinKind

_BUILT_IN = frozenset(
    kind.qualified for family in (access, control, core, own) for kind in family.KINDS if kind.everywhere
)

KINDS = (
    BuiltinKind(
        "APIBinding",
        "apibindings.apis.kcp.io",
        behaviour=rules.API_BINDING,
        generation=True,
        everywhere=True,
        filled=True,
        converts=apiversions.binding,
        computed_status=True,
        servers_status=True,
        administered_status=True,
        defines_kinds=True,
        conditions=conditiontypes.API_BINDING,
    ),
    BuiltinKind(
        "APIExport",
        "apiexports.apis.kcp.io",
        behaviour=rules.export_behaviour(_BUILT_IN),
        generation=True,
        everywhere=True,
        converts=apiversions.export,
        computed_status=True,
        servers_status=True,
        administered_status=True,
        defines_kinds=True,
        offered=True,
        conditions=conditiontypes.API_EXPORT,
    ),
    BuiltinKind(
        "APIExportEndpointSlice",
        "apiexportendpointslices.apis.kcp.io",
        behaviour=rules.API_EXPORT_ENDPOINT_SLICE,
        generation=True,
        everywhere=True,
        filled=True,
        conditions=conditiontypes.ENDPOINT_SLICE,
    ),
    BuiltinKind(
        "APIResourceSchema",
        "apiresourceschemas.apis.kcp.io",
        behaviour=rules_definitions.API_RESOURCE_SCHEMA,
        generation=True,
        everywhere=True,
        defines_kinds=True,
        offered=True,
    ),
)

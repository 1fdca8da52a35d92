"""Content that ships with Treeplane: in `root` workspace types, exports of what every workspace has (and, where a fleet
says so, what everybody is granted there), and in `root:compute` the exports of workloads and of our own kinds that not
every workspace has.

Rendered like what git declares, into the same store, with `treeplane.dev/origin: system` in place of a file. A
directory of the same name adds to it: a manifest of the same object wins.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from apiserver.model import paths
from apiserver.model.marks import NO_SLICE, ORIGIN, SYSTEM
from apiserver.registry import shards
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.entry import BuiltinKind, Sync
from apiserver.registry.builtins.served import SHIPPED_IDENTITY, exported_builtins, target_builtins
from apiserver.registry.served import ServedKind
from reconciler.plan.rootaccess import grants

COMPUTE = "root:compute"
EXPORT = "kubernetes"
SCHEMA_PREFIX = "v1-36"
_OWN_PREFIX = "v1"

Manifest = dict[str, Any]

WORKLOADS = tuple(kind for kind in ENTRIES.values() if kind.sync is Sync.BOUND)
"""What the export `kubernetes` offers."""

_OFFERED = {(kind.group, kind.kind): EXPORT for kind in WORKLOADS} | {
    (kind.group, kind.kind): kind.export for kind in ENTRIES.values() if kind.export
}
"""By which export each kind is offered."""

OWN = frozenset(kind.export for kind in ENTRIES.values() if kind.export)
"""The exports of our own kinds."""

EVERYWHERE = ("tenancy.kcp.io", "topology.kcp.io")
"""kcp's exports in root of kinds that every workspace here has without a binding. They offer nothing, so that types
and manifests that bind them hold here, too."""


def _object(api_version: str, kind: str, name: str, spec: Manifest) -> Manifest:
    metadata = {"name": name, "annotations": {ORIGIN: SYSTEM}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def _workload(entry: BuiltinKind) -> ServedKind:
    kind = target_builtins().preferred(entry.group, entry.resource)
    assert kind is not None
    return kind


def _schema(kind: ServedKind, prefix: str) -> Manifest:
    # The schema proper is the program's: a bound kind of Kubernetes, or of ours, is served by the built-in strategy.
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return _object(
        "apis.kcp.io/v1alpha1",
        "APIResourceSchema",
        f"{prefix}.{kind.resource}.{kind.group or 'core'}",
        {
            "group": kind.group,
            "names": {
                "plural": kind.resource,
                "singular": kind.singular,
                "kind": kind.kind,
                "listKind": kind.list_kind,
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": open_schema,
                    "subresources": {"status": {}},
                }
            ],
        },
    )


def _type(name: str, spec: Manifest) -> Manifest:
    return _object("tenancy.kcp.io/v1alpha1", "WorkspaceType", name, spec)


def _ref(name: str) -> Manifest:
    return {"name": name, "path": "root"}


def workspace_types() -> list[Manifest]:
    """kcp's types: universal is the default; organisations stand under root, teams under organisations or teams. And
    kube-compat, a workspace that is to its users what a kube-apiserver without nodes is."""
    extends = {"with": [_ref("universal")]}
    return [
        _type("root", {"defaultChildWorkspaceType": _ref("organization"), "extend": extends,
                       "limitAllowedParents": {"none": True}}),
        _type("universal", {"defaultChildWorkspaceType": _ref("universal")}),
        _type("organization", {"defaultChildWorkspaceType": _ref("universal"), "extend": extends,
                               "limitAllowedParents": {"types": [_ref("root")]}}),
        _type("team", {"defaultChildWorkspaceType": _ref("universal"), "extend": extends,
                       "limitAllowedParents": {"types": [_ref("organization"), _ref("team")]}}),
        _type("home", {"defaultChildWorkspaceType": _ref("universal"), "extend": extends,
                       "limitAllowedParents": {"none": True}}),
        _type("kube-compat", {"defaultChildWorkspaceType": _ref("universal"), "writes": "Store",
                              "builtins": "Kubernetes"}),
    ]  # fmt: skip


def shard() -> Manifest:
    """The Shard that this server is. Its addresses are the server's, which no object says (registry/shards)."""
    found = _object("core.kcp.io/v1alpha1", "Shard", shards.USUAL, {})
    found["metadata"]["labels"] = {"name": shards.USUAL}
    return found


def workspace_type(path: str, name: str) -> Manifest | None:
    """The shipped type of that name, of the workspace at `path`."""
    if path != "root":
        return None
    return next((each for each in workspace_types() if each["metadata"]["name"] == name), None)


def compute_export() -> list[Manifest]:
    """Workload kinds for tenants."""
    return _offered(EXPORT, [_schema(_workload(w), SCHEMA_PREFIX) for w in WORKLOADS])


def own_exports() -> list[Manifest]:
    """The kinds by which workloads get to sync targets."""
    kinds = exported_builtins().all()
    found: list[Manifest] = []
    for name in sorted(OWN):
        found += _offered(name, [_schema(k, _OWN_PREFIX) for k in kinds if export_of(k.group, k.kind) == name])
    return found


def root_exports() -> list[Manifest]:
    """Nobody looks for consumers of what offers nothing, so they have no endpoint slices."""
    found = [_object("apis.kcp.io/v1alpha2", "APIExport", name, {"resources": []}) for name in EVERYWHERE]
    for each in found:
        each["metadata"]["annotations"][NO_SLICE] = "true"
    return found


def _offered(name: str, schemas: list[Manifest]) -> list[Manifest]:
    resources = [
        {"name": s["spec"]["names"]["plural"], "group": s["spec"]["group"], "schema": s["metadata"]["name"]}
        for s in schemas
    ]
    return [*schemas, _object("apis.kcp.io/v1alpha2", "APIExport", name, {"resources": resources})]


def export_of(group: str, kind: str) -> str:
    """The export of root:compute that offers a kind, "" if none does."""
    return _OFFERED.get((group, kind), "")


def identity_of(path: str, export: str) -> str:
    """The identity hash of an export that brings our own kinds, or offers nothing, whoever declares it there; "" of
    others, which have keys of their own."""
    return SHIPPED_IDENTITY if export in {COMPUTE: OWN, paths.ROOT: EVERYWHERE}.get(path, ()) else ""


def manifests(path: str, *, root_open: bool = False) -> list[Manifest]:
    """The shipped objects of the workspace at `path`. `root_open`: in root, with what kcp grants everybody there."""
    if path == "root":
        return [*workspace_types(), shard(), *root_exports(), *(grants() if root_open else ())]
    if path == COMPUTE:
        return [*compute_export(), *own_exports()]
    return []


def digest() -> str:
    """Of all that ships: another one where this version of Treeplane ships something else."""
    found = {path: manifests(path, root_open=True) for path in (paths.ROOT, *shipped_workspaces())}
    return hashlib.sha256(orjson.dumps(found, option=orjson.OPT_SORT_KEYS)).hexdigest()


def shipped_workspaces() -> tuple[str, ...]:
    """Workspaces that exist without a directory."""
    return (COMPUTE,)

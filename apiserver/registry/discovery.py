"""Discovery documents of a table of kinds: the aggregated form and the older one, a document per group and version.

Pure functions; which form a client wants, caching and HTTP are the endpoints'.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from apiserver.registry import oldgroups, subresources
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.kinds import KindTable, ServedKind

Document = dict[str, Any]


def api_versions() -> Document:
    """What /api answers."""
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": ""}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def api_group_list(kinds: KindTable) -> Document:
    """What /apis answers: every group but the core one."""
    groups = [_group(group, versions) for group, versions in kinds.groups().items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: KindTable, group: str) -> Document | None:
    """What /apis/<group> answers; None for a group that is not served."""
    versions = kinds.groups().get(group) or oldgroups.table(kinds).groups().get(group)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)} if versions and group else None


def _group(group: str, versions: list[str]) -> Document:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def api_resource_list(kinds: KindTable, group: str, version: str) -> Document | None:
    """What /api/v1 or /apis/<group>/<version> answers; None for one that is not served."""
    served = _of(kinds, group, version)
    if not served:
        return None
    stored = {kind.storage: kind for kind in kinds.all() if kind.storage_version}
    resources: list[Document] = []
    for kind in served:
        resources += [_resource(kind, stored.get(kind.storage, kind)), *_subresources(kind)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": resources,
    }


def aggregated(kinds: KindTable, *, core: bool) -> Document:
    """An APIGroupDiscoveryList: with `core` of the core group (asked for at /api), else of all others (/apis)."""
    items = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {
                    "version": version,
                    "resources": [_aggregated(kind) for kind in _of(kinds, group, version)],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for group, versions in {**kinds.groups(), **oldgroups.table(kinds).groups()}.items()
        if core is (group == "")
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def storage_version_hash(kind: ServedKind) -> str:
    """Tells clients that two kinds are stored as one. `kind`: in the version that is stored."""
    entry = ENTRIES.get(kind.qualified)
    stored = (entry.hashed_as if entry is not None else "") or f"{kind.group}/{kind.version}"
    digest = hashlib.sha256(f"{stored}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _of(kinds: KindTable, group: str, version: str) -> list[ServedKind]:
    if oldgroups.newer(group, kinds):
        return [oldgroups.unlisted(k) for k in _of(oldgroups.table(kinds), group, version)]
    found = [k for k in kinds.all() if (k.group, k.version) == (group, version)]
    return sorted(found, key=lambda k: k.resource)


def _resource(kind: ServedKind, stored: ServedKind) -> Document:
    """`stored`: the kind in the version that its objects are stored in."""
    found: Document = {
        "name": kind.resource,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": sorted(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.storage and (kind.custom or "create" in kind.verbs):
        found["storageVersionHash"] = storage_version_hash(stored)
    return found


def _subresources(kind: ServedKind) -> list[Document]:
    found = []
    for name in sorted(kind.subresources):
        about = subresources.of(kind, name)
        group, version, answer = about.kind
        entry: Document = {"name": f"{kind.resource}/{name}", "singularName": "", "namespaced": kind.namespaced}
        if group != kind.group:
            entry |= {"group": group, "version": version}
        found.append({**entry, "kind": answer, "verbs": list(about.verbs)})
    return found


def _aggregated(kind: ServedKind) -> Document:
    found: Document = {
        "resource": kind.resource,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": sorted(kind.verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if kind.subresources:
        found["subresources"] = [_aggregated_subresource(kind, name) for name in sorted(kind.subresources)]
    return found


def _aggregated_subresource(kind: ServedKind, name: str) -> Document:
    about = subresources.of(kind, name)
    group, version, answer = about.kind
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": answer},
        "verbs": list(about.verbs),
    }

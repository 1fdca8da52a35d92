"""The kinds of `/clusters/*`: what a list over all workspaces can be of.

Built-in kinds are the same everywhere. A bound API is addressed as `<resource>:<identity hash>`, or by its plain name
where only one identity is bound; a custom resource of CRDs by its name, in the schema of the first workspace that has
one.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from apiserver.endpoints.realms import Realm
from apiserver.registry.kinds import workspace_builtins
from apiserver.registry.served import ServedKind

_BINDINGS = "apibindings.apis.kcp.io"
_CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_PAGE = 1000


def kind_everywhere(realm: Realm, group: str, version: str, resource: str) -> ServedKind | None:
    """None if no workspace serves it."""
    plain, _, identity = resource.partition(":")
    if not identity:
        builtin = workspace_builtins().by_resource(group, version, plain)
        if builtin is not None:
            return builtin
    for cluster in _serving(realm, group, plain, identity):
        found = realm.catalog.kinds(cluster).by_resource(group, version, plain)
        if found is not None and (not identity or found.storage.endswith(f":{identity}")):
            return found
    return None


def _serving(realm: Realm, group: str, resource: str, identity: str) -> Iterator[str]:
    """Logical clusters whose bindings or CRDs name the resource."""
    for name in (_BINDINGS, *([] if identity else [_CRDS])):
        after = None
        while True:
            page = realm.store.scan(name, after=after, limit=_PAGE)
            for record in page.records:
                obj = orjson.loads(record.value)
                if name == _CRDS:
                    if record.key.name == f"{resource}.{group}":
                        yield record.key.cluster
                    continue
                for bound in (obj.get("status") or {}).get("boundResources") or ():
                    hashed = (bound.get("schema") or {}).get("identityHash", "")
                    if bound.get("group") == group and bound.get("resource") == resource and identity in ("", hashed):
                        yield record.key.cluster
            if page.more is None:
                break
            after = page.more

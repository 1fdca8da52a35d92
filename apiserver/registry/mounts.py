"""Mounts: a workspace that is served elsewhere, where an object of its parent says.

The Workspace names the object (spec.mount.ref), which stands in the parent, is marked as a mount and says in its status
where and whether. Whoever keeps it writes that; so it counts for who may be sent where no more than a URL that one is
told. Called for each request to a mount (endpoints/realms), and by the controller that says on the Workspace how it is
(controllers/mounts). Reads a store, and nothing else.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from apiserver.model.keys import Key
from apiserver.model.kinds import split_api_version
from apiserver.registry.kindtable import KindTable
from apiserver.storage.protocol import ReadView

Object = dict[str, Any]

IS_MOUNT = "experimental.tenancy.kcp.io/is-mount"
READY = "WorkspaceMountReady"
"""The condition of a Workspace that is a mount."""
NOT_FOUND, NOT_READY = "MountObjectNotFound", "MountObjectNotReady"


class MountReference(NamedTuple):
    """The object that a mount names."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


class MountState(NamedTuple):
    """`url`: where it is served; "" while it is not, for the `reason` in one word and a `message` for people."""

    url: str
    reason: str = ""
    message: str = ""


def reference_of(workspace: Object | None) -> MountReference | None:
    """None: it is no mount."""
    ref = (((workspace or {}).get("spec") or {}).get("mount") or {}).get("ref")
    if not isinstance(ref, dict):
        return None
    group, version = split_api_version(str(ref.get("apiVersion") or ""))
    return MountReference(group, version, *(str(ref.get(field) or "") for field in ("kind", "namespace", "name")))


def state_of(store: ReadView, kinds: KindTable, cluster: str, ref: MountReference) -> MountState:
    """`kinds`: those that are served in the parent, whose logical cluster is `cluster`."""
    kind = kinds.by_kind(ref.group, ref.version, ref.kind)
    namespace = (ref.namespace or "default") if kind is not None and kind.namespaced else ""
    found = store.get(Key(kind.storage, cluster, namespace, ref.name)) if kind is not None else None
    obj: Object = orjson.loads(found.value) if found is not None else {}
    if ((obj.get("metadata") or {}).get("annotations") or {}).get(IS_MOUNT) != "true":
        text = f"there is no {ref} with the annotation {IS_MOUNT}: 'true'"
        return MountState("", NOT_FOUND, text)
    status = obj.get("status")
    said = status if isinstance(status, dict) else {}
    url, phase = said.get("URL"), said.get("phase")
    if phase != "Ready" or not isinstance(url, str) or not url:
        return MountState("", NOT_READY, f"{ref} is not Ready: its phase is {str(phase or 'Unknown')[:63]}")
    return MountState(url)


def workspace_at_url(url: str, server: str) -> str | None:
    """The workspace of this server (`server`: its URL) that a URL leads to; None where it leads elsewhere."""
    begin = f"{server}/clusters/"
    name = url.removesuffix("/").removeprefix(begin)
    return name if server and url.startswith(begin) and name and "/" not in name else None

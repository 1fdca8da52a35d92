"""An object's residue, what git cannot tell of it: kept on the status branch, and put back at recovery.

Only what differs from what the object would be by itself, so most objects leave none: one whose identity and
content follow from the commit in which its workspace appeared, with no status and nothing added to it.

    metadata:
      uid, creationTimestamp      where they do not follow from the workspace's origin: it came later, or was adopted
      generation                  other than 1
      annotations                 decisions of Treeplane's controllers; the commit that last changed the content, where
                                  that is not the workspace's origin
      finalizers, deletionTimestamp, deletionGracePeriodSeconds
    allocated                     what a Service was given
    fieldOwners                   its managedFields, as JSON: they are long, deep, and read by programs alone
    status                        where it does not follow from git; of a Workspace and a LogicalCluster what runtime
                                  decided (plan/runtimestatus)

An object that git declares no more and that waits for its finalizers stands nowhere else: all of it is residue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.model import marks, origins
from apiserver.model.commits import CommitRef
from apiserver.model.identity import object_uid
from apiserver.model.keys import Key
from apiserver.model.origins import Origin
from apiserver.model.reserved import SETTABLE
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import allocated
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.builtins.entry import Runtime
from reconciler.plan import runtimestatus

Object = dict[str, Any]

COMPUTED = having(lambda kind: kind.computed_status)
"""Resources whose status follows from git."""

_NEVER = having(lambda kind: kind.runtime is Runtime.ALWAYS)
"""Resources that nobody would miss."""

_SECRETS = "secrets"
_NAMESPACES = "namespaces"
_ACTIVE = {"phase": "Active"}
_ALIVE = frozenset({"lastHeartbeatTime", "lastSyncerHeartbeatTime", "resourceVersion"})
_MARKS = frozenset(
    {marks.CLUSTER, marks.SOURCE_PATH, marks.SOURCE_COMMIT, marks.ORIGIN, marks.PATH, marks.TYPE, *marks.PLACES}
)
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT = ("finalizers", *_DELETION)
_KEPT_OF_WORKSPACES = (*_KEPT, "ownerReferences")
"""Of which a manifest says owners; a workspace.yaml does not."""
_FIRST = (b'"generation":1,', b'"generation":1}')
_FURTHER = (
    *(b'"finalizers":', b'"deletionTimestamp":', b'"managedFields":'),
    *(f'"{key}":'.encode() for key in SETTABLE),
)
_FINALIZERS = b'"finalizers":'
_NAMESPACE_OF = b'"annotations":{"' + marks.CLUSTER.encode() + b'":"%b"}'
_NAMESPACE_END = b',"spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}'
_NAMESPACE_MORE = (b'"generation":', b'"ownerReferences":', b'"deletionTimestamp":', b'"managedFields":')
"""A namespace that is as it was made, by nothing that git says: no annotation but its logical cluster's, which all
objects have."""
_RUNTIME = marks.as_stored(marks.RUNTIME)
_REMOVED = marks.as_stored(marks.REMOVED)


@dataclass(frozen=True, slots=True)
class IdentitySource:
    """What an object's identity follows from besides where it stands: the fleet's id, and the origin (a commit) of the
    workspace that it is judged with."""

    fleet: str
    origin: CommitRef


def may_leave(key: Key) -> bool:
    """Whether such an object may leave a residue."""
    resource = key.resource.partition(":")[0]
    return not resource.startswith("~") and resource not in _NEVER


def is_runtime(value: bytes) -> bool:
    """Whether no commit knows of the object with this value: nobody would read its residue back."""
    return _RUNTIME in value and _origin(value) == marks.RUNTIME


def is_none(key: Key, value: bytes) -> bool:
    """Whether an object, as it is stored, certainly leaves none: seen at a glance, since every workspace has such
    objects."""
    if key.resource == _NAMESPACES:
        return (
            value.endswith(_NAMESPACE_END)
            and _NAMESPACE_OF % key.cluster.encode() in value
            and value.count(_FINALIZERS) == 1
            and not any(each in value for each in _NAMESPACE_MORE)
        )
    if key.resource != LOGICAL_CLUSTERS or not runtimestatus.says_nothing(value):
        return False
    return any(each in value for each in _FIRST) and not any(each in value for each in _FURTHER)


def of(key: Key, obj: Object, home: IdentitySource) -> Object | None:
    """The residue of an object as it is stored; None if there is none."""
    resource = key.resource.partition(":")[0]
    metadata = _identity(key, obj, home)
    out: Object = {}
    if resource != _SECRETS:  # of which nothing but the identity is anybody's to know
        decisions = _decisions(obj["metadata"].get("annotations") or {})
        if decisions:
            metadata["annotations"] = {**metadata.get("annotations", {}), **decisions}
        kept = _KEPT_OF_WORKSPACES if resource == WORKSPACES else _KEPT
        metadata |= {k: obj["metadata"][k] for k in kept if obj["metadata"].get(k) is not None}
        owners = _owners(obj["metadata"].get("managedFields") or [])
        out |= {"fieldOwners": orjson.dumps(owners).decode()} if owners else {}
    if (obj["apiVersion"], obj["kind"]) == ("v1", "Service"):
        out |= {"allocated": given} if (given := allocated.of(obj)) else {}
    status = _lasting(_status(resource, obj))
    if status and not (resource == _NAMESPACES and status == _ACTIVE):
        out["status"] = status
    if not metadata and not out:
        return None
    named = {k: obj["metadata"][k] for k in ("name", "namespace") if obj["metadata"].get(k)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**named, **metadata}, **out}


def restore(obj: Object, residue: Object) -> None:
    """Gives an object, as its manifest makes it, what it had besides (in place). Identity and status are not given:
    `identity_of` and the caller know."""
    metadata, known = obj["metadata"], residue.get("metadata") or {}
    if residue.get("allocated"):
        allocated.restore(obj, residue["allocated"])
    annotations = {k: v for k, v in (known.get("annotations") or {}).items() if k not in _MARKS}
    if annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    metadata.update({k: known[k] for k in _KEPT_OF_WORKSPACES if k in known})
    if residue.get("fieldOwners"):
        metadata["managedFields"] = orjson.loads(residue["fieldOwners"])


def is_ending(key: Key, value: bytes) -> bool:
    """Whether git declares the object no more, and it waits for its finalizers: all of it is residue then. Not so a
    Secret, which may hold what never was in git."""
    return _REMOVED in value and key.resource != _SECRETS and _origin(value) == marks.REMOVED


def ending(obj: Object) -> Object:
    """The residue of such an object."""
    annotations = {k: v for k, v in obj["metadata"]["annotations"].items() if k not in (marks.CLUSTER, marks.ORIGIN)}
    status = {"status": _lasting(obj["status"])} if obj.get("status") else {}
    return {**obj, **status, "metadata": {**obj["metadata"], "annotations": annotations}}


def restored_ending(residue: Object, cluster: str) -> Object:
    """The object that leaves `ending`, in the logical cluster where it stands."""
    ours = {marks.CLUSTER: cluster, marks.ORIGIN: marks.REMOVED}
    annotations = {**(residue["metadata"].get("annotations") or {}), **ours}
    return {**residue, "metadata": {**residue["metadata"], "annotations": annotations}}


def _origin(value: bytes) -> str:
    """What an object says of its origin; "" if a file declares it."""
    annotations = orjson.loads(value)["metadata"].get("annotations") or {}
    return "" if origins.path_in(annotations) else annotations.get(marks.ORIGIN, "")


def _status(resource: str, obj: Object) -> Object | None:
    """What of an object's status does not follow from git."""
    if resource in runtimestatus.RESOURCES:
        return runtimestatus.lasting(obj)
    return None if resource in COMPUTED or resource == _SECRETS else obj.get("status")


def _identity(key: Key, obj: Object, home: IdentitySource) -> Object:
    metadata, resource = obj["metadata"], key.resource
    annotations = metadata.get("annotations") or {}
    out: Object = {}
    path, commit = origins.path_in(annotations), annotations.get(marks.SOURCE_COMMIT, str(home.origin))
    follows = not path or (commit == str(home.origin) and not Origin(path).in_keys)
    # A Workspace may have been another's child, or had another name, when it came.
    if (not follows or resource == WORKSPACES) and metadata["uid"] != object_uid(home.fleet, key, home.origin):
        out = {"uid": metadata["uid"], "creationTimestamp": metadata["creationTimestamp"]}
    if metadata.get("generation", 1) != 1:
        out["generation"] = metadata["generation"]
    if commit != str(home.origin):
        out["annotations"] = {marks.SOURCE_COMMIT: commit}
    return out


def _decisions(annotations: Object) -> Object:
    """What Treeplane's controllers said of it. Annotations of others are theirs to restore."""
    ours = (".kcp.io", ".treeplane.dev")
    return {k: v for k, v in annotations.items() if k not in _MARKS and f".{k.partition('/')[0]}".endswith(ours)}


def _owners(entries: list[Object]) -> list[Object]:
    """Who owns a status says when it was last written, which may mean no more than that somebody is alive."""
    return [{k: v for k, v in e.items() if k != "time"} if e.get("subresource") else e for e in entries]


def _lasting(value: Any) -> Any:
    """Without what only means "still alive", and with conditions in an order that depends on nothing."""
    if isinstance(value, dict):
        return {k: _lasting(v) for k, v in value.items() if k not in _ALIVE}
    if isinstance(value, list):
        items = [_lasting(v) for v in value]
        if items and all(isinstance(i, dict) and "type" in i and "status" in i for i in items):
            return sorted(items, key=lambda i: str(i["type"]))
        return items
    return value

"""What the fleet's stores index of Kubernetes' objects: who belongs to whom, what is ending, what ends by itself, whose
tokens stand where, which namespaces run somewhere, what is placed where, who is bound to what, whose an identity is,
what has finalizers, which workspaces are inactive, which require groups, which roles are made of others, what is
mounted where, which workspaces wait for which program, which objects say that something of theirs is amiss.

Declared in apiserver/stores.py, so that every process that writes keeps them up; read by the controllers, who look up
what they would have to remember otherwise. A term is made of what stands in the object and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import orjson

from apiserver.model import clock, marks
from apiserver.model.keys import Key
from apiserver.model.reserved import is_inactive
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.boundresources import KEEPS
from apiserver.registry.lifecycles import LIFECYCLES, Lifecycle
from apiserver.storage.declared import Index
from apiserver.storage.protocol import Change

Object = dict[str, Any]

_HANDS = 2
"""Values at hand in a change: what was there and what comes."""


@lru_cache(_HANDS)
def _read(value: bytes) -> Any:
    """Once for all indexes that look at it, so nobody may change what it gives."""
    return orjson.loads(value)


TOKEN_TYPE = "kubernetes.io/service-account-token"
TOKEN_ACCOUNT = "kubernetes.io/service-account.name"


def owner(cluster: str, uid: str) -> str:
    """The term of OWNERS under which the dependents of an owner stand. A UID counts in its own workspace alone: whoever
    writes another one's into a reference names nobody, and makes nobody's list longer."""
    return f"{cluster}/{uid}"


def _owners(key: Key, value: bytes) -> Iterable[str]:
    references = _read(value)["metadata"].get("ownerReferences") or ()
    return {owner(key.cluster, r["uid"]) for r in references if isinstance(r.get("uid"), str) and r["uid"]}


OWNERS = Index("owners", 1, _owners, b'"ownerReferences":[')
"""`owner(cluster, uid)` → the objects that name it as an owner."""


def _ending(key: Key, value: bytes) -> Iterable[str]:
    return (key.resource,) if _read(value)["metadata"].get("deletionTimestamp") else ()


ENDING = Index("ending", 1, _ending, b'"deletionTimestamp":')
"""Resource as it is stored (with its identity) → the objects of it that wait for their end."""


def written(resource: str, at: str) -> str:
    """The term of WRITTEN for what was written last at that time (RFC 3339, UTC, whole seconds): with "" the beginning
    of all terms of the resource, which stand in the order of time."""
    return f"{resource}/{at}"


def _written(key: Key, value: bytes) -> Iterable[str]:
    metadata = _read(value)["metadata"]
    # What the server says, not the client: whoever dates an Event into the future would keep it for ever.
    told = [metadata.get("creationTimestamp"), *(e.get("time") for e in metadata.get("managedFields") or ())]
    times = [clock.parse(text) for text in told if text]
    return (written(key.resource, clock.rfc3339(max(times))),) if times else ()


WRITTEN = Index("written", 1, _written, resources=frozenset({"events"}))
"""`written(resource, time)` → objects of kinds that end some time after they were last written."""


def account(cluster: str, namespace: str, name: str) -> str:
    """The term of TOKENS for a ServiceAccount."""
    return f"{cluster}/{namespace}/{name}"


def _tokens(key: Key, value: bytes) -> Iterable[str]:
    secret = _read(value)
    name = (secret["metadata"].get("annotations") or {}).get(TOKEN_ACCOUNT)
    return (account(key.cluster, key.namespace, name),) if secret.get("type") == TOKEN_TYPE and name else ()


TOKENS = Index("tokens", 1, _tokens, f'"{TOKEN_TYPE}"'.encode(), frozenset({"secrets"}))
"""`account(…)` → the Secrets that hold, or ask for, a token of a ServiceAccount."""


def _runs(key: Key, value: bytes) -> Iterable[str]:
    annotations = _read(value)["metadata"].get("annotations") or {}
    return (key.cluster,) if annotations.get(marks.RUNS_ON) else ()


RUNNING = Index("running", 1, _runs, f'"{marks.RUNS_ON}"'.encode(), frozenset({"namespaces"}))
"""Logical cluster → its namespaces that sync targets run, or did and may have copies of."""

PLACEMENTS = "placements.scheduling.kcp.io"


def runs(target: str) -> str:
    """The term of PLACED for the Placements whose decision is a sync target, by its key."""
    return f"runs/{target}"


def leaves(target: str) -> str:
    """The term of PLACED for those that are leaving a sync target."""
    return f"leaves/{target}"


def looks(path: str) -> str:
    """The term of PLACED for those that name a workspace as their Locations'. One that names none means its own."""
    return f"looks/{path}"


def _placed(key: Key, value: bytes) -> Iterable[str]:  # noqa: ARG001
    placement = _read(value)
    annotations = placement["metadata"].get("annotations") or {}
    target, path = annotations.get(marks.SYNC_TARGET), (placement.get("spec") or {}).get("locationWorkspace")
    yield from (leaves(each) for each in annotations.get(marks.LEAVING, "").split(",") if each)
    if target:
        yield runs(target)
    if path:
        yield looks(path)


PLACED = Index("placed", 1, _placed, resources=frozenset({PLACEMENTS}), counted=True)
"""`runs(target)`, `leaves(target)`, `looks(path)` → Placements."""


def schema(cluster: str, name: str, uid: str) -> str:
    """The term of BOUND for an APIResourceSchema of a provider's logical cluster."""
    return f"{cluster}/{name}/{uid}"


def _bound(key: Key, value: bytes) -> Iterable[str]:  # noqa: ARG001
    status = _read(value).get("status") or {}
    cluster = status.get("apiExportClusterName", "")
    named = (bound["schema"] for bound in status.get("boundResources") or ())
    return {schema(cluster, each["name"], each.get("UID", "")) for each in named}


BOUND = Index("bound", 2, _bound, resources=frozenset({"apibindings.apis.kcp.io"}))
"""`schema(provider's cluster, name, UID)` → the APIBindings that are bound with that schema."""


def _keeping(key: Key, value: bytes) -> Iterable[str]:
    said = (_read(value).get("status") or {}).get("conditions") or ()
    return (key.cluster,) if any(each.get("reason") == KEEPS for each in said) else ()


KEEPING = Index("keeping", 1, _keeping, f'"{KEEPS}"'.encode(), frozenset({"apibindings.apis.kcp.io"}))
"""Logical cluster → its APIBindings that cannot take what their export offers for what is there."""


def taken(cluster: str, export: str) -> str:
    """The term of TAKEN for an APIExport of a logical cluster."""
    return f"{cluster}/{export}"


def _taken(key: Key, value: bytes) -> Iterable[str]:  # noqa: ARG001
    binding = _read(value)
    status, named = binding.get("status") or {}, binding["spec"]["reference"].get("export") or {}
    if status.get("phase") != "Bound":
        return ()
    return (taken(status.get("apiExportClusterName", ""), named.get("name", "")),)


TAKEN = Index("taken", 1, _taken, b'"Bound"', frozenset({"apibindings.apis.kcp.io"}))
"""`taken(provider's cluster, export)` → the APIBindings that are bound to it."""


def sliced(place: str, export: str) -> str:
    """The term of SLICED for an APIExport of the workspace at a path, or of a logical cluster: as it is named."""
    return f"{place}/{export}"


def _sliced(key: Key, value: bytes) -> Iterable[str]:
    named = _read(value)["spec"]["export"]
    return (sliced(named.get("path") or key.cluster, named["name"]),)


SLICED = Index("sliced", 1, _sliced, resources=frozenset({"apiexportendpointslices.apis.kcp.io"}))
"""`sliced(path or logical cluster, export)` → the APIExportEndpointSlices that name it."""


def _identities(key: Key, value: bytes) -> Iterable[str]:  # noqa: ARG001
    found = (_read(value).get("status") or {}).get("identityHash")
    return (found,) if found else ()


IDENTITIES = Index("identities", 1, _identities, b'"identityHash"', frozenset({"apiexports.apis.kcp.io"}))
"""Identity hash → the APIExports that have it."""


def waiting(cluster: str, resource: str = "") -> str:
    """The term of FINALIZERS for the objects of a resource in a workspace; without one all its terms begin so."""
    return f"{cluster}/{resource}"


def _finalizers(key: Key, value: bytes) -> Iterable[str]:
    if value.count(_FINALIZERS) == 1 and b'"spec":{' + _FINALIZERS in value:
        return ()  # a namespace's own, which every one has
    return (waiting(key.cluster, key.resource),) if _read(value)["metadata"].get("finalizers") else ()


_FINALIZERS = b'"finalizers":['
FINALIZERS = Index("finalizers", 1, _finalizers, _FINALIZERS, by_form=True)
"""`waiting(cluster, resource)` → objects that do not go before somebody has taken finalizers away."""


def _inactive(key: Key, value: bytes) -> Iterable[str]:
    annotations = _read(value)["metadata"].get("annotations") or {}
    return (key.cluster,) if is_inactive(annotations) else ()


INACTIVE = Index("inactive", 1, _inactive, f'"{marks.INACTIVE}"'.encode(), frozenset({LOGICAL_CLUSTERS}), counted=True)
"""Logical cluster → its LogicalCluster, if that is marked inactive."""


def turns_inactive(change: Change) -> bool:
    """Whether a workspace that was there and answered is marked inactive from this change on."""
    key, was, now = change.key, change.previous, change.value
    if key.resource != LOGICAL_CLUSTERS or was is None or now is None or INACTIVE.hint not in now:
        return False
    return bool(_inactive(key, now)) and not (INACTIVE.hint in was and _inactive(key, was))


def _requiring(key: Key, value: bytes) -> Iterable[str]:
    annotations = _read(value)["metadata"].get("annotations") or {}
    return (key.cluster,) if annotations.get(marks.REQUIRED_GROUPS) else ()


REQUIRING = Index("requiring", 1, _requiring, f'"{marks.REQUIRED_GROUPS}"'.encode(), frozenset({LOGICAL_CLUSTERS}))
"""Logical cluster → its LogicalCluster, if that says which groups are required."""


def _aggregated(key: Key, value: bytes) -> Iterable[str]:
    return (key.cluster,) if _read(value).get("aggregationRule") is not None else ()


AGGREGATED = Index(
    "aggregated", 1, _aggregated, b'"aggregationRule":', frozenset({"clusterroles.rbac.authorization.k8s.io"})
)
"""Logical cluster → its ClusterRoles whose rules are those of others."""


def mounted(cluster: str, name: str) -> str:
    """The term of MOUNTS for the mounts in a workspace that name an object called so."""
    return f"{cluster}/{name}"


def _mounts(key: Key, value: bytes) -> Iterable[str]:
    return (mounted(key.cluster, _read(value)["spec"]["mount"]["ref"]["name"]),)


MOUNTS = Index("mounts", 1, _mounts, b'"mount":{', frozenset({"workspaces.tenancy.kcp.io"}))
"""`mounted(parent's cluster, name)` → the Workspaces that are mounts of such an object."""


def _awaiting(lifecycle: Lifecycle) -> Index:
    """What it looks for is quoted, so that of many of one form it is seen at a glance that they wait for nobody."""

    def terms(key: Key, value: bytes) -> Iterable[str]:  # noqa: ARG001
        obj = _read(value)
        return {name for name in lifecycle.left(obj) if lifecycle.awaits(obj, name)}

    hint = f'"{lifecycle.field}":['.encode()
    return Index(f"awaiting {lifecycle.field}", 1, terms, hint, frozenset({LOGICAL_CLUSTERS}))


AWAITING = {each.word: _awaiting(each) for each in LIFECYCLES}
"""By the word of a Lifecycle: name of a program → the LogicalClusters of workspaces that wait for it."""

PLACEMENT_AMISS, SOURCE_AMISS, LOCKED = "placement", "source", "locked"
OF_PLACEMENTS = frozenset({"Ready", "Scheduled", "Synced"})
"""Conditions of a Placement of which none is to be False."""
OF_SOURCES = frozenset({"SourceFollowed", "SourceStatusWritten"})
"""Conditions of a LogicalCluster whose workspace has its content from another repository."""
SECRETS_LOCKED = "SecretsLocked"
"""The reason of CommitApplied where something encrypted stays as it was."""


def _amiss(key: Key, value: bytes) -> Iterable[str]:
    told = (_read(value).get("status") or {}).get("conditions") or ()
    wrong = {each.get("type") for each in told if each.get("status") == "False"}
    if key.resource == PLACEMENTS:
        return (PLACEMENT_AMISS,) if wrong & OF_PLACEMENTS else ()
    return (SOURCE_AMISS,) if key.resource == LOGICAL_CLUSTERS and wrong & OF_SOURCES else ()


AMISS = Index("amiss", 1, _amiss, b'"False"', frozenset({PLACEMENTS, LOGICAL_CLUSTERS}), counted=True)
"""`PLACEMENT_AMISS` → Placements that are not placed or not synced; `SOURCE_AMISS` → LogicalClusters of workspaces
whose source is not followed or not written to."""


def _locked(key: Key, value: bytes) -> Iterable[str]:  # noqa: ARG001
    told = (_read(value).get("status") or {}).get("conditions") or ()
    return (LOCKED,) if any(each.get("reason") == SECRETS_LOCKED for each in told) else ()


LOCKING = Index("locking", 1, _locked, f'"{SECRETS_LOCKED}"'.encode(), frozenset({LOGICAL_CLUSTERS}), counted=True)
"""`LOCKED` → LogicalClusters of workspaces of which something encrypted cannot be read here."""

ALL = (OWNERS, ENDING, WRITTEN, TOKENS, RUNNING, PLACED, BOUND, KEEPING, TAKEN, SLICED, IDENTITIES, FINALIZERS,
       INACTIVE, REQUIRING, AGGREGATED, MOUNTS, AMISS, LOCKING, *AWAITING.values())  # fmt: skip

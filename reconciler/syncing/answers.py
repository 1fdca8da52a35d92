"""What a sync target answers, checked, so that nobody behind this has to mind whose word it is. Called by client.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from apiserver.model.kinds import GroupResource
from reconciler.syncing.errors import Excessive, TargetRefused, TargetUnreachable

Object = dict[str, Any]

_VERBS = frozenset({"list", "watch", "patch", "delete"})
_RESOURCES = 5_000
"""That a target serves at most."""
_VERSIONS = 20
_SHOWN = 1_000
"""Characters of a target's message that are told further."""
_WORD = re.compile(r"[A-Za-z0-9._-]{1,100}")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP = re.compile(r"[a-z0-9.-]{0,253}")


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a target serves: namespaced resources that can be synced, with versions (preferred first), and the resource
    of each (group, kind)."""

    versions: Mapping[GroupResource, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[tuple[str, str], GroupResource] = field(default_factory=dict)


class Listed(NamedTuple):
    """`token`: to go on with, "" at the end."""

    items: list[Object]
    token: str
    revision: str


def checked(obj: Any) -> Object:
    """An object as it came, if it is one: with the metadata that every object on a cluster has. Raises Unreachable."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if (
        not isinstance(metadata, dict)
        or not all(_is_word(metadata.get(name), 253) for name in ("name", "uid", "resourceVersion"))
        or not _is_word(metadata.get("namespace", "-"), 63)
        or not all(isinstance(metadata.get(name) or {}, dict) for name in ("labels", "annotations"))
    ):
        raise TargetUnreachable("it answered with something that is not an object")
    found: Object = obj
    return found


def _is_word(value: Any, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most


def checked_page(data: bytes, where: str) -> Listed:
    """Raises Unreachable."""
    try:
        page = orjson.loads(data)
        metadata = page["metadata"]
        items = page["items"] or []
        token, revision = metadata.get("continue") or "", metadata.get("resourceVersion") or ""
        good = isinstance(items, list) and isinstance(token, str) and isinstance(revision, str)
    except (ValueError, TypeError, KeyError, AttributeError):
        good = False
    if not good:
        raise TargetUnreachable(f"GET {where} was not answered with a list")
    return Listed([checked(item) for item in items], token, revision)


def discovered(documents: Iterable[Object]) -> Discovery:
    """From aggregated discovery (`/api` and `/apis`). Raises Unreachable."""
    versions: dict[GroupResource, tuple[str, ...]] = {}
    kinds: dict[tuple[str, str], GroupResource] = {}
    try:
        for resource, version, kind in (found for document in documents for found in _resources(document)):
            known = versions.get(resource, ())
            if len(known) < _VERSIONS:
                versions[resource] = (*known, version)
            kinds.setdefault((resource.group, kind), resource)
            if len(versions) > _RESOURCES:
                raise Excessive(f"it says that it serves more than {_RESOURCES} resources")
    except (TypeError, KeyError, AttributeError):
        raise TargetUnreachable("it does not say what it serves as Kubernetes does (apidiscovery.k8s.io)") from None
    return Discovery(versions, kinds)


def _resources(document: Object) -> Iterator[tuple[GroupResource, str, str]]:
    """Those that can be synced: resource, version, kind."""
    for group in document.get("items") or ():
        name = (group.get("metadata") or {}).get("name", "")
        for version in group.get("versions") or ():
            for resource in version.get("resources") or ():
                if resource.get("scope") != "Namespaced" or not set(resource.get("verbs") or ()) >= _VERBS:
                    continue
                kind = resource["responseKind"]["kind"]
                labels = (resource["resource"], version["version"])
                if _GROUP.fullmatch(name) and all(map(_LABEL.fullmatch, labels)) and _WORD.fullmatch(kind):
                    yield GroupResource(name, labels[0]), labels[1], kind


def refused(code: int, data: bytes, where: str) -> TargetRefused:
    """From an answer that is an error."""
    if code < 400:
        return TargetRefused(code, f"HTTP {code}", "it redirects, which is not followed: name the address itself")
    try:
        status = orjson.loads(data)
        reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    except (ValueError, AttributeError):
        reason, message = "", ""
    if not _WORD.fullmatch(reason):
        reason = f"HTTP {code}"
    # What an API server says about a Secret or a token may quote it.
    shown = "" if "/secrets" in where or where.endswith("/token") else " ".join(message[:_SHOWN].split())
    return TargetRefused(code, reason, shown)

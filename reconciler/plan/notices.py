"""What happened to an object, of what stood in it before and what stands in it now: the things that people are told of,
as Events and as lines of `up`.

Called by controllers/notices with entries of the log. Pure functions on objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from apiserver.model import conditions
from apiserver.model.brief import brief
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, SYNC_TARGETS, WORKSPACES
from reconciler.plan.computed import COMMIT_APPLIED, FLEET_FOLLOWED, SOURCE_FOLLOWED, SOURCE_STATUS_WRITTEN
from reconciler.plan.happened import (
    DRIFT,
    FOLLOWED,
    HELD,
    MENDED,
    MOVED,
    OBJECTS_DELETED,
    PLACED,
    REFUSED,
    SYNC_FAILED,
    SYNCED,
    TAKEN,
    TARGET_BACK,
    TARGET_LOST,
    UNPLACED,
    WORKSPACES_DELETED,
)

Object = dict[str, Any]

PLACEMENTS = "placements.scheduling.kcp.io"

_ON = "on sync target "
MESSAGE = 1000
"""Characters of a message: Kubernetes takes 1,024."""


class About(NamedTuple):
    """The object that an Event is about, as Kubernetes names it; `namespace` "" of one in none."""

    api_version: str
    kind: str
    name: str
    namespace: str
    uid: str


class Notice(NamedTuple):
    """`cluster`: the logical cluster of the object, where its Event stands. `revision`: of the entry that says so;
    another number of the kind where none does."""

    cluster: str
    about: About
    reason: str
    message: str
    warning: bool = False
    revision: int = 0


def about(obj: Object) -> About:
    metadata = obj["metadata"]
    return About(obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace", ""), metadata["uid"])


def notices(key: Key, before: Object, after: Object, revision: int) -> Iterator[Notice]:
    """Of an object that was written. `before`: {} where there was none."""
    for reason, message, warning in _FOUND[key.resource](before, after):
        yield Notice(key.cluster, about(after), reason, brief(message, MESSAGE), warning, revision)


def of_copy(target: str, text: str) -> str:
    """The message of what is told of a copy. `target`: its sync target, by path and name."""
    return f"{_ON}{target}: {text}"


def on_target(message: str) -> tuple[str, str]:
    """Target and text of such a message; "" for the target of any other."""
    if not message.startswith(_ON):
        return "", message
    target, _, text = message.removeprefix(_ON).partition(": ")
    return target, text


def is_ours(reason: str) -> bool:
    """Whether only this server says so."""
    return reason in _OURS or reason.startswith(("Fleet", *_OF_SOURCES.values()))


def is_settled(placement: Object) -> bool:
    """Whether a Placement was ever decided, and all of it looked at on its target."""
    return bool(_target(placement)) and _said(placement, "Synced") != {}


_Found = Iterator[tuple[str, str, bool]]


def _workspace(before: Object, after: Object) -> _Found:
    was, now = _said(before, COMMIT_APPLIED), _said(after, COMMIT_APPLIED)
    if now.get("status") == "False":
        if was.get("status") != "False" or was.get("message") != now.get("message"):
            yield HELD, now.get("message", ""), True
    elif was.get("status") == "False":
        yield MENDED, now.get("message") or "all that was judged of it is served", False
    for kind, begin in _OF_SOURCES.items():
        yield from _source(_said(before, kind), _said(after, kind), kind, begin)


def _source(was: Object, now: Object, kind: str, begin: str) -> _Found:
    """What is followed for the first time, or another one from now on, is not back. Why it is not is told again where
    that is for another reason."""
    if now.get("status") == "False":
        if (was.get("status"), was.get("reason")) != ("False", now.get("reason")):
            yield f"{begin}{now.get('reason', '')}", now.get("message", ""), True
    elif now.get("status") == "True" and was.get("status") == "False":
        yield kind, now.get("message", ""), False


def _cluster(before: Object, after: Object) -> _Found:
    yield from _workspace(before, after)
    was, now = _said(before, FLEET_FOLLOWED), _said(after, FLEET_FOLLOWED)
    if now.get("status") == "False":
        if (was.get("status"), was.get("message")) != ("False", now.get("message")):
            yield f"Fleet{now.get('reason', '')}", now.get("message", ""), True
    elif was.get("status") == "False":
        yield FOLLOWED, now.get("message", ""), False


def _placement(before: Object, after: Object) -> _Found:
    was, now = _target(before), _target(after)
    why = _said(after, "Scheduled").get("message", "")
    if now and not was:
        yield PLACED, why or f"runs on sync target {now}", False
    elif now != was and now:
        yield MOVED, f"from sync target {was}: {why or f'runs on sync target {now}'}", False
    elif was and not now:
        yield UNPLACED, f"from sync target {was}: {why}", True
    yield from _synced(_said(before, "Synced"), _said(after, "Synced"))


def _synced(was: Object, now: Object) -> _Found:
    if now.get("status") == "False":
        if (was.get("status"), was.get("message")) != ("False", now.get("message")):
            yield SYNC_FAILED, now.get("message", ""), True
    elif now.get("status") == "True" and was.get("status") != "True":
        yield SYNCED, "all of it is on the sync target", False


def _sync_target(before: Object, after: Object) -> _Found:
    """One that only begins to be asked, or whose credentials are yet to come, is neither lost nor back."""
    if _said(after, "Ready").get("status") == "True":
        if _is_gone(before):
            yield TARGET_BACK, "it answers again", False
    elif _is_gone(after) and not _is_gone(before):
        yield TARGET_LOST, _said(after, "Ready").get("message", ""), True


def _is_gone(target: Object) -> bool:
    """Whether a sync target is known not to answer, or to refuse."""
    said, status = _said(target, "Ready"), target.get("status") or {}
    if said.get("reason") == _MISSING:
        return "lastSyncerHeartbeatTime" in status  # it answered once: its credentials were taken away
    return said.get("status") == "False" or (said.get("status") == "Unknown" and said.get("reason") != _CONNECTING)


_CONNECTING, _MISSING = "Connecting", "CredentialsMissing"
_OF_SOURCES = {SOURCE_FOLLOWED: "Source", SOURCE_STATUS_WRITTEN: "SourceStatus"}
"""With what begins the reason of an Event that tells that it is not so, before the condition's."""
_FOUND: Mapping[str, Callable[[Object, Object], _Found]] = {
    WORKSPACES: _workspace,
    LOGICAL_CLUSTERS: _cluster,
    PLACEMENTS: _placement,
    SYNC_TARGETS: _sync_target,
}
_OF_OBJECTS = {HELD, MENDED, PLACED, MOVED, UNPLACED, SYNCED, SYNC_FAILED, TARGET_LOST, TARGET_BACK, REFUSED, TAKEN}
_OURS = frozenset({*_OF_OBJECTS, DRIFT, OBJECTS_DELETED, WORKSPACES_DELETED})
ASKED = frozenset(_FOUND)
"""Storage names of the kinds whose objects something is told of."""


def _said(obj: Object, kind: str) -> Object:
    return conditions.get((obj.get("status") or {}).get("conditions"), kind) or {}


def _target(placement: Object) -> str:
    found = (placement.get("status") or {}).get("syncTarget") or {}
    return f"{found.get('path', '')}:{found['name']}" if found.get("name") else ""

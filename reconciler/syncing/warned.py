"""What a sync target warns of, about what runs there for workspaces: a Pod finds no node, an image cannot be had.

Followed by target, one watch for each sync target, of Warnings alone: nothing is asked for each object, and nothing is
kept of it. A warning is told upstream if it is about a copy that is there, or about something that a copy owns, a few
steps away at most; of what that is the target is asked.

A target may lie about what runs there, and about nothing else: the copy has to be one that its workspace has run there
now, and what does not fit that is told to nobody. Neither is what was before the watch began: a start tells nothing
again. However much a target warns, it is asked and told a few times a second at most.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

from apiserver.model.brief import brief
from apiserver.model.kinds import GroupResource
from reconciler.controllers.failures import Expected, log_failure
from reconciler.plan.notices import is_ours
from reconciler.syncing import client
from reconciler.syncing.client import TargetEvent
from reconciler.syncing.upstream import Item

Object = dict[str, Any]

EVENTS = client.path(GroupResource("", "events"), "v1")
ONLY = "type=Warning"
_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,63}")
_DEEP = 3
"""Owners above what a warning is about: Pod, ReplicaSet, Deployment."""
_KNOWN = 2048
_MESSAGE = 500
"""Characters of what a target says."""
_NODE = re.compile(r"(?<![\w-])(nodes?[ /])(\"[^\"]*\"|'[^']*')")
_SOME_NODE = "a node"


class WarningSource(Protocol):
    """The part of a TargetClient that is asked."""

    def revision(self, where: str, fields: str) -> str: ...

    def watch(self, where: str, selector: str, revision: str, fields: str = "") -> Iterator[TargetEvent]: ...


class CopiesThere(Protocol):
    """What the syncer knows of its target."""

    def is_home(self, namespace: str) -> bool:
        """Whether a namespace of the target is one of a workspace's."""

    def copy(self, group: str, kind: str, namespace: str, name: str, uid: str) -> Item | None:
        """The object upstream of what is a copy there, and runs there now."""

    def owned(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        """What the target says of anything else: its metadata."""


class Rate:
    """`burst` at once, and so many a second."""

    def __init__(self, burst: float, rate: float, now: Callable[[], float] = time.monotonic) -> None:
        self._burst, self._rate, self._now = burst, rate, now
        self._left, self._since = burst, now()

    def takes(self) -> bool:
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _Thing(NamedTuple):
    """What a warning is about, or an owner of that."""

    group: str
    kind: str
    name: str
    uid: str


class WarningTold(NamedTuple):
    """About an object upstream. `text`: with names of the target still, but for nodes."""

    item: Item
    reason: str
    text: str


class Warnings:
    """Finds what one is to be told as. `asks`, `tells`: how often."""

    def __init__(self, there: CopiesThere, asks: Rate | None = None, tells: Rate | None = None) -> None:
        self._there = there
        self._asks, self._tells = asks or Rate(50, 5.0), tells or Rate(100, 2.0)
        self._copies: dict[str, _Thing] = {}
        """By uid of what a copy owns: the copy."""

    def told(self, event: Object) -> WarningTold | None:
        about, reason, message = event.get("involvedObject"), event.get("reason"), event.get("message")
        namespace = event["metadata"].get("namespace", "")
        if event.get("type") != "Warning" or not isinstance(about, dict) or not isinstance(message, str):
            return None
        if not isinstance(reason, str) or not _REASON.fullmatch(reason) or is_ours(reason):
            return None
        if not namespace or about.get("namespace") != namespace or not self._there.is_home(namespace):
            return None
        thing = _thing(about)
        item = self._there.copy(*_place(thing, namespace)) if thing is not None else None
        owner = self._owner(namespace, thing) if thing is not None and item is None else item
        if thing is None or owner is None or not self._tells.takes():
            return None
        text = _without_nodes(brief(message, _MESSAGE), {*_nodes(event)})
        return WarningTold(owner, reason, text if item is not None else f"{thing.kind} {thing.name}: {text}")

    def _owner(self, namespace: str, thing: _Thing) -> Item | None:
        """Of what is no copy: the copy that it belongs to."""
        known = self._copies.get(thing.uid)
        if known is not None:
            return self._there.copy(*_place(known, namespace))
        at = thing
        for _ in range(_DEEP):
            obj = self._ask(at, namespace)
            above = next(_owners(obj), None) if obj is not None else None
            if above is None:
                return None
            item = self._there.copy(*_place(above, namespace))
            if item is not None:
                self._remember(thing.uid, above)
                return item
            at = above
        return None

    def _ask(self, thing: _Thing, namespace: str) -> Object | None:
        """This very one."""
        obj = self._there.owned(thing.group, thing.kind, namespace, thing.name) if self._asks.takes() else None
        return obj if obj is not None and obj["metadata"]["uid"] == thing.uid else None

    def _remember(self, uid: str, copy: _Thing) -> None:
        if len(self._copies) >= _KNOWN:
            self._copies.clear()
        self._copies[uid] = copy


class WarningWatch(threading.Thread):
    """Of one target. `tell`: of what is to be told."""

    def __init__(
        self,
        source: WarningSource,
        warnings: Warnings,
        tell: Callable[[WarningTold], None],
        name: str = "warnings",
        longest: float = 60.0,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._source, self._warnings, self._tell, self._longest = source, warnings, tell, longest
        self._stopped = threading.Event()
        self._revision = ""

    def stop(self) -> None:
        """Ends after the request under way; finishing the client ends that, too."""
        self._stopped.set()

    def run(self) -> None:
        pause, said = 1.0, False
        while not self._stopped.is_set():
            begun = time.monotonic()
            try:
                self._round()
            except Exception as error:
                self._revision = ""  # it may be too old; what happened since is told by conditions
                if not said and not self._stopped.is_set():
                    log_failure(self.name, EVENTS, error)
                said = True
            if time.monotonic() - begun >= self._longest:
                pause, said = 1.0, False
            self._stopped.wait(pause)
            pause = min(pause * 2, self._longest)

    def _round(self) -> None:
        if not self._revision:
            self._revision = self._source.revision(EVENTS, ONLY)
        reads = Rate(1_000, 1_000)
        for kind, obj, _ in self._source.watch(EVENTS, "", self._revision, ONLY):
            if kind == "ERROR":
                self._revision = ""
                return
            self._revision = obj["metadata"]["resourceVersion"]
            if kind in ("ADDED", "MODIFIED"):
                self._event(obj)
            while not reads.takes() and not self._stopped.wait(0.1):
                pass
            if self._stopped.is_set():
                return

    def _event(self, obj: Object) -> None:
        try:
            told = self._warnings.told(obj)
        except Expected as error:  # of what it is about the target did not answer
            log_failure(self.name, EVENTS, error)
            return
        if told is not None:
            self._tell(told)


def _place(thing: _Thing, namespace: str) -> tuple[str, str, str, str, str]:
    return thing.group, thing.kind, namespace, thing.name, thing.uid


def _thing(said: Any) -> _Thing | None:
    """Of a reference as a target has it; None for what is none."""
    if not isinstance(said, dict):
        return None
    found = [said.get(field, "") for field in ("apiVersion", "kind", "name", "uid")]
    if not all(isinstance(each, str) and len(each) <= 253 for each in found) or not all(found[1:]):
        return None
    version, kind, name, uid = found
    return _Thing(version.rpartition("/")[0], kind, name, uid)


def _owners(obj: Object) -> Iterator[_Thing]:
    """The one that controls it."""
    said = obj["metadata"].get("ownerReferences")
    for each in said if isinstance(said, list) else ():
        found = _thing(each) if isinstance(each, dict) and each.get("controller") is True else None
        if found is not None:
            yield found


def _nodes(event: Object) -> Iterator[str]:
    """Names of nodes that an event says beside its text."""
    source = event.get("source")
    for name in (source.get("host") if isinstance(source, dict) else "", event.get("reportingInstance")):
        if isinstance(name, str):
            yield name


def _without_nodes(text: str, names: set[str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        if 2 < len(name) <= 253:
            text = re.sub(rf"(?<![-\w.])\"?{re.escape(name)}\"?(?![-\w.])", _SOME_NODE, text)
    return _NODE.sub(rf"\1({_SOME_NODE})", text)

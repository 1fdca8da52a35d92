"""Events as they are written: so many at once and a second, together where that is possible, and what happens again in
the Event that says it already.

Called by notices. An Event stands beside the object that it is about: in its namespace, or in `default` of its
workspace. How many there are of one object is plan/correlation's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.registry import codec, objects, tree
from apiserver.storage.protocol import NEVER, Check, Conflict, Op, Put, Store
from reconciler.controllers.toldcopies import ELSE, EVENTS, LAST
from reconciler.plan.correlation import Correlation, Saying
from reconciler.plan.notices import Notice

COMPONENT = "treeplane"
_BATCH = 250


class EventSettings(NamedTuple):
    """Events that are written at once, and a second, of all there is. `gather`: seconds without another deletion after
    which they are told of."""

    burst: int = 1000
    rate: float = 200.0
    gather: float = 0.5


USUAL = EventSettings()


class EventWriter:
    """`told`: hears of each that was written, with the workspace's path."""

    def __init__(
        self, store: Store, told: Callable[[str, Notice], None], settings: EventSettings, now: Callable[[], float]
    ) -> None:
        self._store, self._told, self._settings, self._now = store, told, settings, now
        self._correlation = Correlation()
        self._left, self._since = float(settings.burst), now()

    def write(self, found: list[Notice]) -> list[Notice]:
        """As many as may be by now; what is left of them."""
        while found:
            some = found[: min(_BATCH, self._may())]
            if not some:
                return found
            found = found[len(some) :]
            now = self._now()
            said = [saying for each in some if (saying := self._correlation.say(each, now)) is not None]
            self._left -= len(some)
            for saying in self._said(said):
                self._told(tree.path_named(self._store, saying.notice.cluster), saying.notice)
        return found

    def _may(self) -> int:
        now = self._now()
        self._left = min(self._settings.burst, self._left + (now - self._since) * self._settings.rate)
        self._since = now
        return int(self._left)

    def _said(self, said: Sequence[Saying]) -> Iterable[Saying]:
        """Writes them together; one by one where one of them cannot be written. Those that were."""
        try:
            ops = [self._ops(each) for each in said]
            self._store.write(*_once(op for some in ops for op in some)).result()
            return [each for each, some in zip(said, ops, strict=True) if some]
        except Conflict:
            return [each for each in said if self._alone(each)]

    def _alone(self, saying: Saying) -> bool:
        try:
            ops = self._ops(saying)
            self._store.write(*ops).result()
        except Conflict:  # the workspace goes, or it was said before
            return False
        return bool(ops)

    def _ops(self, saying: Saying) -> list[Op]:
        notice, key = saying.notice, _key(saying)
        there = self._store.get(tree.cluster_key(key.cluster))
        if there is None:
            return []
        before = self._store.get(key)
        if before is None:
            event = objects.complete(key, _event(saying), runtime=True)
            put = Put(key, codec.encode(event), NEVER)
        else:
            event = codec.decode(before.value, before.revision)
            said = event["metadata"].setdefault("annotations", {})
            if int(said.get(LAST, 0)) >= notice.revision:
                return []  # it was looked at again after a restart
            put = Put(key, codec.encode(_again(event, saying)), before.revision)
        return [Check(there.key, there.revision), put]


def _key(saying: Saying) -> Key:
    notice = saying.notice
    name = f"{notice.about.name[:200]}.{saying.first:x}{crc32(notice.reason.encode()) & 0xFF:02x}"
    return Key(EVENTS, notice.cluster, notice.about.namespace or ELSE, name)


def _event(saying: Saying) -> dict[str, Any]:
    notice, about, now = saying.notice, saying.notice.about, clock.now()
    involved = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
    if about.namespace:
        involved["namespace"] = about.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"annotations": {LAST: str(notice.revision)}},
        "involvedObject": involved,
        "reason": notice.reason,
        "message": notice.message,
        "type": "Warning" if notice.warning else "Normal",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "eventTime": None,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": saying.times,
    }


def _again(event: dict[str, Any], saying: Saying) -> dict[str, Any]:
    now, metadata = clock.now(), event["metadata"]
    written = {"manager": COMPONENT, "operation": "Update", "apiVersion": "v1", "time": now}
    annotations = {**metadata["annotations"], LAST: str(saying.notice.revision)}
    # It is kept as long as others from here on (controllers/expiry).
    metadata = {**metadata, "annotations": annotations, "managedFields": [{**written, "fieldsType": "FieldsV1"}]}
    return {
        **event,
        "metadata": metadata,
        "message": saying.notice.message,
        "count": saying.times,
        "lastTimestamp": now,
    }


def _once(ops: Iterable[Op]) -> list[Op]:
    """Without a check that was made already; the last of several writes of one Event."""
    found: dict[tuple[bool, Key], Op] = {}
    for op in ops:
        assert isinstance(op, Check | Put)
        found[(isinstance(op, Check), op.key)] = op
    return list(found.values())

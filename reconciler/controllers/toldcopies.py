"""What was said last of a copy on a sync target, so that a refusal that lasts is said once, however often the server
that meets it is started.

Called by controllers/notices, for what no entry of the log tells. It is remembered here; after a start it is read where
it stands: in the condition of the object's namespace, which lists the first few that are refused, and, of more than
those, in the object's Events.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from apiserver.model import conditions
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import Store
from reconciler.controllers.bindings import NAMESPACES
from reconciler.controllers.namespaces import NAMESPACE_SYNCED
from reconciler.plan.correlation import TOGETHER
from reconciler.plan.happened import REFUSED, TAKEN
from reconciler.plan.notices import About, Notice, on_target

Object = dict[str, Any]

EVENTS = "events"
ELSE = "default"
"""The namespace of Events about what stands in none."""
LAST = "treeplane.dev/last-notice"
"""On an Event: the revision that it tells of last."""
_REMEMBERED = 4096
_READ = 200
"""Events that are looked through: those of an object are fewer."""
_ENOUGH = 300
"""Characters by which a reason is known again: Events and conditions are cut further on."""

_MORE = re.compile(r"; and \d+ more(;|$)")
"""Not all that is refused is listed."""

_Copy = tuple[str, About, str]


class ToldCopies:
    """Called by every thread that meets a copy, before what it met is in the namespace's condition."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._last: OrderedDict[_Copy, str] = OrderedDict()
        """Why it is refused as it was said last, "" for one that is not."""

    def is_told(self, notice: Notice) -> bool:
        """Whether a notice of a copy says what was said of it last; else it is said now. Of any other: no."""
        if notice.reason not in (REFUSED, TAKEN):
            return False
        target, why = on_target(notice.message)
        copy, why = (notice.cluster, notice.about, target), why if notice.reason == REFUSED else ""
        with self._lock:
            before = self._last[copy] if copy in self._last else self._stored(copy, why)
            self._last[copy] = why
            self._last.move_to_end(copy)
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)
        return notice.reason == REFUSED and before[:_ENOUGH] == why[:_ENOUGH]

    def _stored(self, copy: _Copy, why: str) -> str:
        listed = self._is_listed(copy[0], copy[1], why)
        if listed is not None:
            return why if listed else ""
        found = max(self._events(copy), default=None)
        return found[1] if found is not None else ""

    def _events(self, copy: _Copy) -> Iterator[tuple[int, str]]:
        """The revision that an Event tells of last, and why the copy is refused by then."""
        cluster, about, target = copy
        begin = Key(EVENTS, cluster, about.namespace or ELSE, f"{about.name[:200]}.")
        for record in self._store.scan(EVENTS, cluster, begin.namespace, after=begin, limit=_READ, count=False).records:
            if not record.key.name.startswith(begin.name):
                break
            event = codec.decode(record.value, record.revision)
            said = (event["metadata"].get("annotations") or {}).get(LAST, "")
            if (event.get("involvedObject") or {}).get("uid") == about.uid and said.isdecimal():
                there, told = on_target(str(event.get("message", "")).removeprefix(TOGETHER))
                if there == target and event.get("reason") in (REFUSED, TAKEN):
                    yield int(said), told if event["reason"] == REFUSED else ""

    def _is_listed(self, cluster: str, about: About, why: str) -> bool | None:
        """None where the condition does not tell."""
        record = self._store.get(Key(NAMESPACES, cluster, "", about.namespace)) if about.namespace else None
        status = codec.decode(record.value, record.revision).get("status") or {} if record is not None else {}
        said = conditions.get(status.get("conditions"), NAMESPACE_SYNCED)
        if said is None:
            return None
        message = said.get("message", "")
        if said.get("status") == "False" and f" {about.namespace}/{about.name}: {why[:_ENOUGH]}" in f" {message}":
            return True
        return None if said.get("status") == "False" and _MORE.search(message) else False

"""What is on a sync target of ours: lists and watches, and a small cache of what they told.

Of each object the cache keeps identity, revision, the digest of the rendering it was found in step with, and its
health; the object itself only until someone has compared it. One thread a kind, started when the kind is first needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.model.kinds import GroupResource
from reconciler.controllers.runtime import log_failure
from reconciler.syncing import client
from reconciler.syncing.errors import Refused, Unreachable
from reconciler.syncing.inventory import PART_OF

_REMEMBERED = 10_000

Object = dict[str, Any]


class Source(Protocol):
    """The part of a Client that is watched."""

    def list(self, where: str, selector: str = "", limit: int = 500) -> tuple[list[Object], str]: ...

    def watch(self, where: str, selector: str, revision: str) -> Iterable[tuple[str, Object]]: ...


@dataclass(slots=True)
class Live:
    """One object on the target. `fresh`: it as last seen, until compared. `digest`: of the rendering that it is in step
    with, b"" if that is not known. `part_of`: the ApplySet in its label."""

    uid: str
    revision: str
    part_of: str
    deleting: bool
    fresh: Object | None
    digest: bytes = b""
    healthy: bool = False


class Cache:
    """Objects of one kind by (namespace on the target, name). Safe from every thread."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Live] = {}
        self._gone: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def get(self, namespace: str, name: str) -> Live | None:
        with self._lock:
            return self._objects.get((namespace, name))

    def names(self, namespace: str) -> list[str]:
        with self._lock:
            return [name for held, name in self._objects if held == namespace]

    def keys(self) -> list[tuple[str, str]]:
        with self._lock:
            return list(self._objects)

    def saw(self, obj: Object) -> bool:
        """The object as a list, a watch or an answer shows it; whether that was news (not an echo, not older)."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        with self._lock:
            before = self._objects.get(key)
            revision = str(metadata["resourceVersion"])
            if key in self._gone and not _newer(revision, self._gone[key]):
                return False
            if before is not None and before.uid == metadata["uid"] and not _newer(revision, before.revision):
                return False
            self._objects[key] = Live(
                uid=metadata["uid"],
                revision=revision,
                part_of=(metadata.get("labels") or {}).get(PART_OF, ""),
                deleting="deletionTimestamp" in metadata,
                fresh=obj,
                digest=before.digest if before is not None and before.uid == metadata["uid"] else b"",
            )
            return True

    def compared(self, namespace: str, name: str, revision: str, digest: bytes, healthy: bool) -> None:
        """What was seen at this revision is in step with the rendering of this digest."""
        with self._lock:
            held = self._objects.get((namespace, name))
            if held is not None and held.revision == revision:
                held.digest, held.healthy, held.fresh = digest, healthy, None

    def drop(self, namespace: str, name: str, uid: str, revision: str) -> bool:
        """Deleted on the target at this revision. Remembered: an answer under way may still show it alive."""
        with self._lock:
            if len(self._gone) >= _REMEMBERED:
                self._gone.clear()
            self._gone[namespace, name] = revision
            held = self._objects.get((namespace, name))
            if held is None or held.uid != uid:
                return False
            del self._objects[namespace, name]
            return True

    def keep(self, keys: set[tuple[str, str]]) -> list[tuple[str, str]]:
        """Forget all others, which a full list did not show; returns them."""
        with self._lock:
            gone = [key for key in self._objects if key not in keys]
            for key in gone:
                del self._objects[key]
            return gone


def _newer(revision: str, than: str) -> bool:
    """Revisions of one target can be compared as numbers (Kubernetes promises it since 1.35, etcd always did)."""
    if revision.isdigit() and than.isdigit():
        return int(revision) > int(than)
    return revision != than


class Watcher(threading.Thread):
    """Lists and watches one kind with the label selector of what is ours; `changed(namespace, name)` after each."""

    FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0

    def __init__(
        self, source: Source, kind: GroupResource, version: str, selector: str, changed: Callable[[str, str], None]
    ) -> None:
        super().__init__(name=f"watch-{kind}", daemon=True)
        self.cache = Cache()
        self.listed = threading.Event()
        """The target has answered a full list."""
        self._source, self._selector, self._changed = source, selector, changed
        self._where = client.path(kind, version)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Ends after the request under way; closing the client ends that, too."""
        self._stopped.set()

    def run(self) -> None:
        pause = self.FIRST_PAUSE
        while not self._stopped.is_set():
            try:
                revision = self._list()
                pause = self.FIRST_PAUSE
                self._follow(revision)
            except (Unreachable, Refused) as error:
                if self._stopped.is_set():
                    return
                if pause == self.FIRST_PAUSE:
                    log_failure(self.name, self._where, error)
                self._stopped.wait(pause)
                pause = min(pause * 2, self.LONGEST_PAUSE)
            except Exception as error:
                log_failure(self.name, self._where, error)
                self._stopped.wait(pause)

    def _list(self) -> str:
        items, revision = self._source.list(self._where, self._selector)
        keys = {(i["metadata"].get("namespace", ""), i["metadata"]["name"]) for i in items}
        news = self.cache.keep(keys)
        for item in items:
            if self.cache.saw(item):
                news.append((item["metadata"].get("namespace", ""), item["metadata"]["name"]))
        self.listed.set()
        for key in news:
            self._changed(*key)
        return revision

    def _follow(self, revision: str) -> None:
        """Watch on and on from where the last watch ended, until the target no longer knows that revision."""
        while not self._stopped.is_set():
            begun = revision
            for kind, obj in self._source.watch(self._where, self._selector, revision):
                if kind == "ERROR":
                    return
                revision = str(obj["metadata"]["resourceVersion"])
                if kind != "BOOKMARK":
                    self._event(kind, obj)
            if begun == revision:
                # A target that ends watches at once must not be asked in a tight loop.
                self._stopped.wait(self.FIRST_PAUSE)

    def _event(self, kind: str, obj: Object) -> None:
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if kind == "DELETED":
            news = self.cache.drop(*key, metadata["uid"], str(metadata["resourceVersion"]))
        else:
            news = self.cache.saw(obj)
        if news:
            self._changed(*key)

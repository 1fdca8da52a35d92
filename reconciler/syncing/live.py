"""What is on a sync target of ours: a small cache of what lists and watches told (watcher.py's).

Of each object the cache keeps identity, revision, the digest of the rendering it was found in step with, and its
health; the object itself only until someone has compared it, and only as far as the target's allowance goes: what a
target says may not fill our memory.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from reconciler.syncing.errors import Excessive
from reconciler.syncing.inventory import PART_OF
from reconciler.syncing.render import OF

_REMEMBERED = 10_000

Object = dict[str, Any]


class Allowance:
    """What the caches of one target may hold together. `objects`: how many; `size`: bytes, as they came, of objects
    that nobody has compared yet."""

    def __init__(self, objects: int = 500_000, size: int = 128 * 1024 * 1024) -> None:
        self._objects, self._size = objects, size
        self._lock = threading.Lock()

    def one(self) -> None:
        """One object more. Raises Excessive."""
        with self._lock:
            if self._objects <= 0:
                raise Excessive("it shows more objects of ours than are kept of any target")
            self._objects -= 1

    def took(self, size: int) -> bool:
        """Whether there is room for so many bytes, which are taken then."""
        with self._lock:
            if size > self._size:
                return False
            self._size -= size
            return True

    def back(self, size: int, objects: int = 0) -> None:
        with self._lock:
            self._size += size
            self._objects += objects


@dataclass(slots=True)
class Live:
    """One object on the target. `fresh`: it as last seen, until compared (None also where there was no room for it).
    `size`: bytes that it counts as meanwhile. `digest`: of the rendering that it is in step with, b"" if that is not
    known. `part_of`: the ApplySet in its label; `of`: the uid in its annotation (Jobs)."""

    uid: str
    revision: str
    part_of: str
    of: str
    deleting: bool
    fresh: Object | None
    digest: bytes = b""
    healthy: bool = False
    size: int = 0


class Cache:
    """Objects of one kind by (namespace on the target, name). Safe from every thread."""

    def __init__(self, allowance: Allowance | None = None) -> None:
        self._allowance = allowance or Allowance()
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

    def saw(self, obj: Object, size: int = 0) -> bool:
        """The object as a list, a watch or an answer shows it; whether that was news (not an echo, not older). `size`:
        its bytes, 0 for an answer, which is compared at once. Raises Excessive."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        with self._lock:
            before = self._objects.get(key)
            revision = str(metadata["resourceVersion"])
            if key in self._gone and not _newer(revision, self._gone[key]):
                return False
            if before is not None and before.uid == metadata["uid"] and not _newer(revision, before.revision):
                return False
            if before is None:
                self._allowance.one()
            else:
                self._allowance.back(before.size)
            kept = self._allowance.took(size)
            self._objects[key] = Live(
                uid=metadata["uid"],
                revision=revision,
                part_of=(metadata.get("labels") or {}).get(PART_OF, ""),
                of=str((metadata.get("annotations") or {}).get(OF, "")),
                deleting="deletionTimestamp" in metadata,
                fresh=obj if kept else None,
                digest=before.digest if kept and before is not None and before.uid == metadata["uid"] else b"",
                size=size if kept else 0,
            )
            return True

    def compared(self, namespace: str, name: str, revision: str, digest: bytes, healthy: bool) -> None:
        """What was seen at this revision is in step with the rendering of this digest."""
        with self._lock:
            held = self._objects.get((namespace, name))
            if held is not None and held.revision == revision:
                self._allowance.back(held.size)
                held.digest, held.healthy, held.fresh, held.size = digest, healthy, None, 0

    def drop(self, namespace: str, name: str, uid: str, revision: str) -> bool:
        """Deleted on the target at this revision. Remembered: an answer under way may still show it alive."""
        with self._lock:
            if len(self._gone) >= _REMEMBERED:
                self._gone.clear()
            self._gone[namespace, name] = revision
            held = self._objects.get((namespace, name))
            if held is None or held.uid != uid:
                return False
            self._forget((namespace, name))
            return True

    def keep(self, keys: set[tuple[str, str]]) -> list[tuple[str, str]]:
        """Forget all others, which a full list did not show; returns them."""
        with self._lock:
            gone = [key for key in self._objects if key not in keys]
            for key in gone:
                self._forget(key)
            return gone

    def _forget(self, key: tuple[str, str]) -> None:
        self._allowance.back(self._objects.pop(key).size, 1)


def _newer(revision: str, than: str) -> bool:
    """Revisions of one target can be compared as numbers (Kubernetes promises it since 1.35, etcd always did)."""
    if revision.isdecimal() and than.isdecimal():
        return int(revision) > int(than)
    return revision != than

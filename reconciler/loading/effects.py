"""What a judged workspace writes: each declared object merged into what is stored, with identity, generation and marks.

The same content twice yields no operation. Called by judge once a workspace's content is known to be good.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from apiserver.model import clock, conditions, marks
from apiserver.model.identity import object_uid
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import NEVER, Delete, Op, Put, Record
from reconciler.loading.moment import Moment, Moments
from reconciler.loading.render import Declared
from reconciler.plan.merge import merged, same_content
from reconciler.plan.summary import Entry, Summary, entry_name

Object = dict[str, Any]


@dataclass(slots=True)
class Effects:
    """Operations of one workspace, collected; `changed` tells whether its own content changed."""

    fleet: str
    path: str
    moment: Moment
    moments: Moments
    summary: Summary
    recorded: bool = False
    ops: list[Op] = field(default_factory=list)
    changed: bool = False

    def put(self, declared: Declared, old: Object | None, record: Record | None, status: Object | None) -> None:
        """Write what a manifest declares. `old`: the object rendered from the manifest before; `record`: what is
        stored; `status`: a status that follows from content (None: whatever is stored stays)."""
        if record is None:
            self._create(declared, status)
        else:
            self._update(declared, old, record, status)

    def delete(self, key: Key, record: Record | None) -> None:
        """Remove what git no longer declares; with finalizers it is marked, and goes when the last one does."""
        self.summary.forget(entry_name(key))
        if record is None:
            return
        self.changed = True
        obj: Object = orjson.loads(record.value)
        if not obj["metadata"].get("finalizers"):
            self.ops.append(Delete(key, record.revision))
        elif "deletionTimestamp" not in obj["metadata"]:
            obj["metadata"]["deletionTimestamp"] = self.moment.rfc3339
            obj["metadata"]["deletionGracePeriodSeconds"] = 0
            self.ops.append(Put(key, codec.encode(obj), record.revision, record.stamp))

    def _create(self, declared: Declared, status: Object | None) -> None:
        entry = self._entry_of_new(declared)
        obj = {**declared.obj}
        if status is not None:
            obj["status"] = status
        obj["metadata"] = self._metadata(declared, dict(obj["metadata"]), entry)
        self.summary.set(entry_name(declared.key), entry)
        self.ops.append(Put(declared.key, codec.encode(obj), None if self.recorded else NEVER))
        self.changed = True

    def _entry_of_new(self, declared: Declared) -> Entry:
        if self.recorded:
            return self.summary.entry(entry_name(declared.key))
        if not _in_git(declared):
            return Entry(self.summary.origin, self.summary.origin)
        return Entry(self.moment.id, self.moment.id)

    def _metadata(self, declared: Declared, metadata: Object, entry: Entry) -> Object:
        key = declared.key
        metadata["uid"] = entry.uid or object_uid(
            self.fleet, self.path, key.resource.partition(":")[0], key.namespace, key.name, entry.origin
        )
        metadata["creationTimestamp"] = self._created(entry)
        if declared.kind.generation:
            metadata["generation"] = entry.generation
        metadata["annotations"] = self._marks(declared, metadata.get("annotations") or {}, entry.commit)
        return metadata

    def _created(self, entry: Entry) -> str:
        return entry.created or clock.rfc3339(self.moments.at(entry.origin, self.moment.time).time)

    def time_of(self, declared: Declared, record: Record | None) -> str:
        """The creation time that a declared object has or will have (RFC 3339)."""
        if record is None:
            return self._created(self._entry_of_new(declared))
        found: str = orjson.loads(record.value)["metadata"]["creationTimestamp"]
        return found

    def _marks(self, declared: Declared, annotations: Object, commit: str) -> Object:
        out = {**annotations, marks.CLUSTER: declared.key.cluster}
        if declared.manifest.path:
            out[marks.SOURCE_PATH] = declared.manifest.path
            out[marks.SOURCE_COMMIT] = commit
        return out

    def _update(self, declared: Declared, old: Object | None, record: Record, status: Object | None) -> None:
        stored: Object = orjson.loads(record.value)
        annotations = stored["metadata"].get("annotations") or {}
        bare = {**stored, "metadata": {**stored["metadata"], "annotations": _unmarked(annotations)}}
        new = merged(_named_by_git(old), _named_by_git(declared.obj), bare)
        if status is not None:
            new = {**new, "status": _steady(status, stored.get("status") or {})}
        name = entry_name(declared.key)
        entry = self._known(declared, stored, name)
        if not same_declared(new, bare):
            if declared.kind.generation and not same_content(new, bare):
                entry = replace(entry, generation=int(stored["metadata"].get("generation", 0)) + 1)
            if _in_git(declared):
                entry = replace(entry, commit=self.moment.id)
            self.changed = True
        self.summary.set(name, entry)
        metadata = {**new["metadata"]}
        if declared.kind.generation:
            metadata["generation"] = max(entry.generation, stored["metadata"].get("generation", 1))
        metadata["annotations"] = self._marks(declared, _ours(metadata, declared), entry.commit)
        new = {**new, "metadata": metadata}
        if new != stored:
            self.ops.append(Put(declared.key, codec.encode(new), record.revision, record.stamp))

    def _known(self, declared: Declared, stored: Object, name: str) -> Entry:
        annotations = stored["metadata"].get("annotations") or {}
        if marks.SOURCE_PATH in annotations or not _in_git(declared):
            return self.summary.entry(name)
        # It stood here before git named it (created through the API, or shipped): adopted, and it keeps its UID.
        metadata = stored["metadata"]
        return Entry(
            self.moment.id,
            self.moment.id,
            metadata.get("generation", 1),
            metadata.get("uid", ""),
            metadata.get("creationTimestamp", ""),
        )


_MARKS = (marks.CLUSTER, marks.SOURCE_PATH, marks.SOURCE_COMMIT)


def _in_git(declared: Declared) -> bool:
    """Files under keys/ are not in git: their identity is that of their workspace."""
    return bool(declared.manifest.path) and not declared.manifest.path.startswith("keys/")


def _steady(status: Object, stored: Object) -> Object:
    """A computed status whose conditions keep their transition times where nothing was said anew."""
    if "conditions" not in status:
        return status
    return {**status, "conditions": conditions.merged(stored.get("conditions"), status["conditions"])}


def _unmarked(annotations: Object) -> Object:
    return {k: v for k, v in annotations.items() if k not in _MARKS}


def _ours(metadata: Object, declared: Declared) -> Object:
    annotations = _unmarked(metadata.get("annotations") or {})
    if declared.manifest.path:
        annotations.pop(marks.ORIGIN, None)
    return annotations


_SERVER_METADATA = ("uid", "creationTimestamp", "generation", "resourceVersion", "managedFields")


def _named_by_git(obj: Object | None) -> Object:
    """An object as git names it: without what only the server sets."""
    if obj is None:
        return {}
    metadata = {k: v for k, v in obj["metadata"].items() if k not in _SERVER_METADATA}
    return {**obj, "metadata": metadata}


def same_declared(a: Object, b: Object) -> bool:
    """Whether two objects are the same but for status and an empty annotations map."""
    if not same_content(a, b):
        return False
    left, right = ({k: v for k, v in o["metadata"].items() if v != {}} for o in (a, b))
    return left == right

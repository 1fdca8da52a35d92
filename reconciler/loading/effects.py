"""What a judged workspace writes: each declared object merged into what is stored, with identity, generation and marks.

The same content twice yields no operation. Called by judge once a workspace's content is known to be good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.model import clock, commits, marks, origins
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.conditions import Condition
from apiserver.model.identity import object_uid
from apiserver.model.keys import Key
from apiserver.model.origins import COMPUTED
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec, strategy
from apiserver.registry.intents import DONE, KEPT, Intent
from apiserver.storage.protocol import NEVER, Delete, Op, Put, Record
from apiserver.storage.templates import Kind, Parameter
from reconciler.loading.asked import (
    FILE,
    NOTHING,
    Asked,
    named_by_git,
    object_of,
    same_declared,
    unmarked,
    with_owners,
    with_place,
)
from reconciler.loading.changeset import ChangeKind, ObjectChange, WorkspaceChanges
from reconciler.loading.forms import Example, Forms, Nobody
from reconciler.loading.likeness import like_others
from reconciler.loading.moment import FindMoment, Moment
from reconciler.loading.render import DeclaredObject
from reconciler.plan import turned
from reconciler.plan.computed import OF_SOURCES
from reconciler.plan.merge import merged, same_content
from reconciler.plan.summary import Summary
from reconciler.plan.unsupported import SUPPORTED

Object = dict[str, Any]

_forms = Forms()


@dataclass(slots=True)
class Effects:
    """What becomes of the objects of one workspace, collected in `changes`. `changed`: whether its own content did.

    An object with an intent becomes what was asked for, field owners included, instead of what git and the stored
    object merge to; the answer stands right behind it (see intents). `former`: what is known of one that went, and is
    put back. `said_at`: the commit that says what files say, where that is another one than the moment's.
    """

    fleet: str
    path: str
    moment: Moment
    moments: FindMoment
    summary: Summary
    former: Callable[[Key], Object | None] = lambda _: None
    asked: Asked = NOTHING
    changes: WorkspaceChanges = field(default_factory=lambda: WorkspaceChanges(""))
    changed: bool = False
    said_at: CommitRef = NONE

    @property
    def said(self) -> CommitRef:
        """The commit that says what files say."""
        return self.said_at or self.moment.commit

    def is_new(self, origin: CommitRef) -> bool:
        """Whether what is not stored follows from the commit alone, and `origin` is that."""
        return not self.asked and origin == self.moment.commit == self.summary.origin

    def put(self, declared: DeclaredObject, old: Object | None, record: Record | None, status: Object | None) -> None:
        """Write what a manifest declares. `old`: the object rendered from the manifest before; `record`: what is
        stored; `status`: a status that follows from content (None: whatever is stored stays)."""
        if record is None:
            self._create(declared, status)
        elif declared.key.resource == WORKSPACES and _is_runtime(record):
            self._make(declared, status, record.revision)
        else:
            self._update(declared, old, record, status)

    def restate(self, record: Record, status: Object) -> None:
        """Write another status, which follows from content, of what is stored and stays as it is."""
        stored: Object = orjson.loads(record.value)
        new = {**stored, "status": _steady(status, stored.get("status") or {})}
        if new == stored:
            self.changes.unchanged += 1
            return
        put = Put(record.key, codec.encode(new), record.revision, record.stamp)
        self.changes.objects.append(ObjectChange(ChangeKind.CONFIGURED, put))

    def delete(self, key: Key, record: Record | None, finalizer: str = "") -> None:
        """Remove what git no longer declares; with finalizers it is marked, and goes when the last one does.
        `finalizer`: one that it gets, since it has to wait for others to go."""
        intent = self.asked.ending(key)
        if record is None:
            self.changes.also += intent.answered(KEPT) if intent else ()
            return
        self.changed = True
        obj: Object = orjson.loads(record.value)
        waits = obj["metadata"].get("finalizers") or finalizer
        if (intent and intent.base == record.revision) or not waits:
            answers = tuple(intent.answered(DONE)) if intent else ()
            self.changes.objects.append(ObjectChange(ChangeKind.DELETED, Delete(key, record.revision), answers))
        else:
            put = Put(key, codec.encode(ended(obj, self.moment.rfc3339, finalizer)), record.revision, record.stamp)
            self.changes.objects.append(ObjectChange(ChangeKind.CONFIGURED, put))

    def _create(self, declared: DeclaredObject, status: Object | None) -> None:
        self.changed = True
        if not _is_everywhere(declared) or not self._put_from_form(declared, status):
            self._make(declared, status)

    def _make(self, declared: DeclaredObject, status: Object | None, instead_of: int | None = None) -> None:
        """`instead_of`: the revision of what stands there and goes: a Workspace that was asked for through the API, and
        whose place a directory takes before anything was done for it."""
        intent = self.asked.of(declared.key, None, declared.obj)
        obj = {**(with_place(object_of(intent), declared.obj) or declared.obj)}
        if status is not None:
            obj["status"] = status
        obj["metadata"] = self._metadata(declared, dict(obj["metadata"]))
        value = codec.encode(obj)
        like = like_others(declared.key, obj, value) if _is_common(declared) else None
        expected = self._expected() if instead_of is None else instead_of
        put = Put(declared.key, value, expected, like=like)
        self.changes.objects.append(ObjectChange(ChangeKind.CREATED, put, _answers(intent, DONE)))

    def _put_from_form(self, declared: DeclaredObject, status: Object | None) -> bool:
        """Writes a new object that says the same in every workspace; False where it has to be made in full."""
        if not self.is_new(self.summary.origin) or self._known(declared.key):
            return False

        def example(nobody: Nobody) -> Example:
            theirs = Effects.of_nobody(nobody, nobody.path)
            one = declared._replace(key=declared.key._replace(cluster=nobody.cluster))
            theirs._make(one, status)
            return theirs.example((Kind.UID, theirs.uid_of_new(one.key)), (Kind.TIME, nobody.moment.rfc3339))

        signature = (declared.key.resource, codec.dump(declared.obj), codec.dump(status))
        texts = object_uid(self.fleet, declared.key, self.summary.origin), self._time(self.summary.origin)
        made = _forms.put(signature, example, declared.key, texts)
        if made is None:
            return False
        self.changes.objects.append(ObjectChange(ChangeKind.CREATED, made))
        return True

    @staticmethod
    def of_nobody(nobody: Nobody, path: str) -> Effects:
        """What the workspace at `path`, of those that are none, writes."""
        at = nobody.moment.commit
        return Effects("", path, nobody.moment, nobody, Summary(at, at))

    def example(self, *parameters: Parameter) -> Example:
        """The one object that is written."""
        [made] = self.changes.objects
        assert isinstance(made.op, Put)
        return Example(made.op.key, made.op.value, parameters)

    def _expected(self) -> int | None:
        """What stands where an object is created."""
        return NEVER

    def _origin_of_new(self, declared: DeclaredObject) -> CommitRef:
        return self.said if declared.manifest.origin.in_git else self.summary.origin

    def known_of(self, key: Key) -> Object:
        """What is known of an object that is not stored: who needs it still remembers its metadata."""
        return self.former(key) or {}

    def _known(self, key: Key) -> Object:
        """Its metadata."""
        return self.known_of(key).get("metadata") or {}

    def _metadata(self, declared: DeclaredObject, metadata: Object) -> Object:
        key, known, origin = declared.key, self._known(declared.key), self._origin_of_new(declared)
        metadata["uid"] = self._uid(key, known, origin)
        metadata["creationTimestamp"] = known.get("creationTimestamp") or self._time(origin)
        if declared.kind.generation:
            metadata["generation"] = known.get("generation", 1)
        found = _ours(metadata, declared) if metadata.get("annotations") else {}
        said = (known.get("annotations") or {}).get(marks.SOURCE_COMMIT)
        last = commits.parse(said) if said else origin
        metadata["annotations"] = self._marks(declared, found, last)
        return metadata

    def uid_of_new(self, key: Key) -> str:
        """What an object that a file declares will have, if it is not there yet."""
        return self._uid(key, self._known(key), self.said)

    def _uid(self, key: Key, known: Object, origin: CommitRef) -> str:
        return known.get("uid") or object_uid(self.fleet, key, origin)

    def _time(self, commit: CommitRef) -> str:
        known = self.summary.appeared if commit == self.summary.origin else 0
        return clock.rfc3339(known or self.moments.at(commit, self.moment.time).time)

    def time_of(self, declared: DeclaredObject, record: Record | None) -> str:
        """The creation time that a declared object has or will have (RFC 3339)."""
        if record is None:
            return self._known(declared.key).get("creationTimestamp") or self._time(self._origin_of_new(declared))
        found: str = orjson.loads(record.value)["metadata"]["creationTimestamp"]
        return found

    def dated(self, status: Object, declared: DeclaredObject, record: Record | None) -> Object:
        """A status that follows from content, whose conditions say since when they are so."""
        stored = orjson.loads(record.value) if record is not None else None
        label, born = turned.named(declared.kind.kind, declared.key.name), self.time_of(declared, record)
        return {**status, "conditions": self.since(label, status["conditions"], stored, born)}

    def since(self, label: str, told: Iterable[Condition], stored: Object | None, born: str) -> list[Condition]:
        """Conditions with their times. `label`: the object, as a summary names it; `stored`: as it is stored, None if
        it is not; `born`: its creation time."""
        if stored is None:
            turned.forget(self.summary, label)
            return turned.recorded(self.summary, label, told, born)
        there = (stored.get("status") or {}).get("conditions") or ()
        now = turned.Now(self.moment.step, self.moment.rfc3339)
        return turned.timed(self.summary, now, label, told, there, born)

    def _marks(self, declared: DeclaredObject, annotations: Object, commit: CommitRef) -> Object:
        path, out = declared.manifest.origin.path, {**annotations, marks.CLUSTER: declared.key.cluster}
        if path:
            out.update(origins.marks_of(path, commit))
        return out

    def _update(self, declared: DeclaredObject, old: Object | None, record: Record, status: Object | None) -> None:
        stored: Object = orjson.loads(record.value)
        annotations = stored["metadata"].get("annotations") or {}
        bare = {**stored, "metadata": {**stored["metadata"], "annotations": unmarked(annotations)}}
        if old is None and annotations.get(marks.ORIGIN) == marks.SYSTEM and declared.manifest.origin.in_git:
            old = bare  # it shipped with Treeplane: what the manifest does not say goes
        new = merged(named_by_git(old), named_by_git(declared.obj), bare)
        new = strategy.carried(declared.kind, stored, new)
        intent = self.asked.of(declared.key, record, new)
        asked = object_of(intent)
        if asked is not None and intent is not None:
            # Somebody (a controller, with a status) may have been faster; then it is said on top of that.
            new = asked if intent.base == record.revision else with_owners(new, asked, stored)
        if status is not None:
            new = {**new, "status": _steady(status, stored.get("status") or {})}
        commit = self._last_commit(declared, annotations)
        generation = int(stored["metadata"].get("generation", 0))
        what = ChangeKind.CONFIGURED
        if not same_declared(new, bare):
            generation += not same_content(new, bare)
            # Not for a write through the API: a client that keeps what it saw, as kopf does in an annotation, would see
            # another object after each write of its own, and never come to rest.
            commit = self._changed_by(declared, commit) if intent is None else commit
            self.changed = True
        elif status is None and origins.path_in(annotations) not in ("", declared.manifest.origin.path):
            what = ChangeKind.MOVED
        metadata = {**new["metadata"]}
        if declared.kind.generation:
            metadata["generation"] = max(generation, 1)
        metadata["annotations"] = self._marks(declared, _ours(metadata, declared), commit)
        new = {**new, "metadata": metadata}
        if new != stored:
            put = Put(declared.key, codec.encode(new), record.revision, record.stamp)
            self.changes.objects.append(ObjectChange(what, put, _answers(intent, DONE)))
            return
        self.changes.unchanged += 1
        self.changes.also += _answers(intent, KEPT)

    def _changed_by(self, declared: DeclaredObject, last: CommitRef) -> CommitRef:
        """The commit that changes a stored object which now says something else. `last`: that did before."""
        return self.said if declared.manifest.origin.in_git else last

    def _last_commit(self, declared: DeclaredObject, annotations: Object) -> CommitRef:
        """The commit that last changed a stored object: this one, where it stood here before git named it (created
        through the API, or shipped). It keeps its UID then."""
        if not declared.manifest.origin.in_git:
            return self.summary.origin
        stood = origins.origin_in(annotations)
        return self.said if stood is None else stood.commit or self.summary.origin


@dataclass(slots=True)
class Restored(Effects):
    """At recovery: `recorded` tells what the status branch knows of an object. What is left of one is written over."""

    recorded: Callable[[Key], Object | None] = lambda _: None

    def is_new(self, _origin: CommitRef) -> bool:
        return False

    def uid_of_new(self, key: Key) -> str:
        return self._uid(key, self._known(key), self.summary.origin)

    def since(self, label: str, told: Iterable[Condition], _stored: Object | None, born: str) -> list[Condition]:
        return turned.recorded(self.summary, label, told, born)

    def _expected(self) -> int | None:
        return None

    def _origin_of_new(self, _declared: DeclaredObject) -> CommitRef:
        return self.summary.origin

    def _changed_by(self, declared: DeclaredObject, last: CommitRef) -> CommitRef:
        """As it is recorded: what stands there may be no more than what could be said of it until now."""
        if not declared.manifest.origin.in_git:
            return last
        said = (self._known(declared.key).get("annotations") or {}).get(marks.SOURCE_COMMIT)
        return commits.parse(said) if said else self.summary.origin

    def known_of(self, key: Key) -> Object:
        return self.recorded(key) or {}


def removed(obj: Object) -> Object:
    """An object as it stands on when no file declares it any more."""
    annotations = {k: v for k, v in (obj["metadata"].get("annotations") or {}).items() if k not in FILE}
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, marks.ORIGIN: marks.REMOVED}}}


def ended(obj: Object, at: str, finalizer: str = "") -> Object:
    """An object as it waits for its finalizers, from a time on (RFC 3339) if it does not yet: no file's any more, so
    that whoever set them can take them away. `finalizer`: one that it gets."""
    marked = {"deletionTimestamp": at, "deletionGracePeriodSeconds": 0}
    metadata = {**marked, **removed(obj)["metadata"]}
    if finalizer:
        metadata["finalizers"] = [*dict.fromkeys([*(metadata.get("finalizers") or ()), finalizer])]
    return {**obj, "metadata": metadata}


def _answers(intent: Intent | None, answer: Object) -> tuple[Op, ...]:
    return (*intent.answered(answer), *intent.also) if intent is not None else ()


def _is_runtime(record: Record) -> bool:
    found: Object = orjson.loads(record.value)["metadata"].get("annotations") or {}
    return found.get(marks.ORIGIN) == marks.RUNTIME and not origins.path_in(found)


def _is_everywhere(declared: DeclaredObject) -> bool:
    """Whether it is a namespace that every workspace has."""
    return declared.manifest.origin == COMPUTED and declared.key.resource == "namespaces"


def _is_common(declared: DeclaredObject) -> bool:
    """Whether many workspaces have an object that says the same: what is computed, and what stands for a workspace."""
    return not declared.manifest.origin.path or declared.key.resource == WORKSPACES


def _steady(status: Object, stored: Object) -> Object:
    """A computed status with the conditions that others set, after its own: these stand in the order in which they are
    computed, as in an object that is made anew."""
    if "conditions" not in status:
        return status
    own = {SUPPORTED, *OF_SOURCES, *(c["type"] for c in status["conditions"])}
    others = (c for c in stored.get("conditions") or () if c["type"] not in own)
    return {**status, "conditions": [*status["conditions"], *others]}


def _ours(metadata: Object, declared: DeclaredObject) -> Object:
    annotations = unmarked(metadata.get("annotations") or {})
    if declared.manifest.origin.path:
        annotations.pop(marks.ORIGIN, None)
    return annotations

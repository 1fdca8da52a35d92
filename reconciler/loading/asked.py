"""What is asked for through the API where writes are commits, as one who judges a commit has to look at it.

Made by loader, for a commit that is made of intents and for every other; asked by effects for each object.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent, fits, stands
from apiserver.storage.protocol import NEVER, ReadView, Record
from reconciler.plan.merge import same_content

Object = dict[str, Any]


class Asked:
    """Intents that wait. A crash may have come between the commit that was made of them and its answer, so one counts
    where the commit says the same. What it writes besides somebody else may have taken meanwhile: then it counts no
    more, or nothing of its workspace could be written."""

    def __init__(self, intents: Mapping[Key, Intent] = MappingProxyType({}), store: ReadView | None = None) -> None:
        self._intents, self._store = intents, store

    def __bool__(self) -> bool:
        return bool(self._intents)

    def ending(self, key: Key) -> Intent | None:
        """Of an object that the commit takes away."""
        return self._intents.get(key)

    def of(self, key: Key, record: Record | None, said: Object) -> Intent | None:
        """The intent that the commit fulfils, if there is one. `said`: the object that git makes without it."""
        intent = self._intents.get(key)
        if intent is None or (self._store is not None and not fits(self._store, intent)):
            return None
        return intent if self._counts(intent, record, said) else None

    def _counts(self, intent: Intent, record: Record | None, said: Object) -> bool:
        asked = with_place(object_of(intent), said)
        if asked is None or intent.base != (record.revision if record is not None else NEVER):
            return False
        return same_declared(named_by_git(asked), named_by_git(said))


class Proposed(Asked):
    """Intents that the commit was made of. One that was withdrawn once the commit was the branch's head counts no more:
    its object is what git says, and nobody is answered."""

    def __init__(self, intents: Mapping[Key, Intent], store: ReadView) -> None:
        super().__init__(intents, store)
        self._waiting = store

    def ending(self, key: Key) -> Intent | None:
        intent = super().ending(key)
        return intent if intent is not None and stands(self._waiting, intent) else None

    def _counts(self, intent: Intent, _record: Record | None, _said: Object) -> bool:
        return stands(self._waiting, intent)


NOTHING = Asked()
_TENANCY = "tenancy.kcp.io/"


def object_of(intent: Intent | None) -> Object | None:
    """The object that a write through the API shall leave, less the marks that follow from its commit."""
    if intent is None or intent.value is None:
        return None
    obj: Object = orjson.loads(intent.value)
    annotations = unmarked(obj["metadata"].get("annotations") or {})
    annotations.pop(marks.ORIGIN, None)
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def with_place(asked: Object | None, said: Object) -> Object | None:
    """A new Workspace that was asked for, with what only its commit says: which workspace it is, and where."""
    if asked is None or asked.get("kind") != "Workspace" or not asked["apiVersion"].startswith(_TENANCY):
        return asked
    metadata = {**asked["metadata"]}
    for field in ("annotations", "labels"):
        told = {**(metadata.get(field) or {}), **(said["metadata"].get(field) or {})}
        metadata |= {field: told} if told else {}
    return {**asked, "metadata": metadata, "spec": said.get("spec") or {}}


def with_owners(obj: Object, asked: Object, stored: Object) -> Object:
    """`obj` with the field owners that a write leaves: those of subresources as they are stored by now, the others as
    the write made them."""
    theirs = [e for e in stored["metadata"].get("managedFields") or () if e.get("subresource")]
    ours = [e for e in asked["metadata"].get("managedFields") or () if not e.get("subresource")]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [*ours, *theirs]}} if ours or theirs else obj


FILE = (marks.SOURCE_PATH, marks.SOURCE_COMMIT)
"""The marks that say in which file an object stands."""
_MARKS = (marks.CLUSTER, *FILE)


def unmarked(annotations: Object) -> Object:
    return {k: v for k, v in annotations.items() if k not in _MARKS}


_SERVER_METADATA = ("uid", "creationTimestamp", "generation", "resourceVersion", "managedFields")


def named_by_git(obj: Object | None) -> Object:
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

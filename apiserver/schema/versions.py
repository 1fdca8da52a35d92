"""What a write changed, as the other versions of the object's kind see it.

Who owns a field owns it in the version of the request that set it. Where versions differ in more than their name,
fields of another version are compared in that version: the object is converted to it, before and after the write.
Called by apply.py and ownership.py, which get the other versions from the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from apiserver.schema import fieldset, typed, typed_walk
from apiserver.schema.fieldset import Fields
from apiserver.schema.managed import Managed
from apiserver.schema.node import Node
from apiserver.schema.typed_walk import Changes

Json = dict[str, Any]


class Other(NamedTuple):
    """Another version: its schema's root, and how an object of the request's version gets there and back."""

    root: Node
    there: Callable[[Json], Json]
    back: Callable[[Json], Json]


Others = Callable[[str], Other | None]
"""The version of that apiVersion; None where its fields are called as in the request's version."""


def alike(api_version: str) -> Other | None:  # noqa: ARG001
    """Of kinds whose versions differ in name alone."""
    return None


class Comparison:
    """Of an object before and after a write. `root` and `api_version` are those of the request."""

    def __init__(self, before: Json, after: Json, root: Node, api_version: str, others: Others) -> None:
        self._before, self._after, self._others = before, after, others
        self.own = typed_walk.compare(before, after, root)
        self._known: dict[str, Changes] = {api_version: self.own}

    def of(self, api_version: str) -> Changes:
        """The changes in that version. Raises what converting raises."""
        found = self._known.get(api_version)
        if found is None:
            found = self._known[api_version] = self._compared(api_version)
        return found

    def _compared(self, api_version: str) -> Changes:
        other = self._others(api_version) if self._before else None
        if other is None:
            return self.own
        before, after = other.there(self._before), other.there(self._after)
        return typed_walk.compare(before, after, typed.of_object(other.root))


class Pruning:
    """Taking away what a manager applied last in another version, as far as nobody owns it (see apply.pruned).

    `own`: the root of the request's version; `other`: the version of the last apply.
    """

    def __init__(self, own: Node, other: Other, others: Others) -> None:
        self._own, self._other, self._others = own, other, others
        self._root = typed.of_object(other.root)

    def of(self, merged: Json, last: Fields, owners: Managed) -> Json:
        """`merged` without the fields `last`."""
        last = typed_walk.with_parents(last, self._root)
        whole = self._other.there(merged)
        rest = typed_walk.remove(whole, last, self._root)
        owned: dict[str, Fields] = {}
        for entry in owners.values():
            owned[entry.api_version] = fieldset.union(owned.get(entry.api_version, {}), entry.fields)
        for api_version, fields in owned.items():
            rest = self._with_owned(whole, rest, fields, self._others(api_version))
        kept = fieldset.difference(self._all(whole, self._root), self._all(rest, self._root))
        gone = fieldset.intersection(kept, last)
        result: Json = self._other.back(typed_walk.remove(whole, gone, self._root)) if gone else merged
        return result

    def _with_owned(self, whole: Json, rest: Json, fields: Fields, theirs: Other | None) -> Json:
        """`rest` with what is owned in some version put back. `theirs` None: in the request's."""
        root = typed.of_object(theirs.root) if theirs is not None else self._own
        complete, cut = self._to(whole, theirs), self._to(rest, theirs)
        kept = fieldset.union(self._all(cut, root), typed_walk.with_parents(fields, root))
        remaining = typed_walk.remove(complete, fieldset.difference(self._all(complete, root), kept), root)
        asked = theirs.back(remaining) if theirs is not None else remaining
        return self._other.there(asked)

    def _to(self, obj: Json, theirs: Other | None) -> Json:
        asked = self._other.back(obj)
        return theirs.there(asked) if theirs is not None else asked

    @staticmethod
    def _all(obj: Json, root: Node) -> Fields:
        return typed_walk.with_parents(typed_walk.fields_of(obj, root), root)

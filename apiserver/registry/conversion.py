"""One stored object, several versions: what the others look like.

Custom resources convert as strategy None does, apiVersion is replaced, or by their definition's webhook; built-in kinds
as their entry says (builtins). Called when a stored value is not in the version asked for, and before a value of a
version that is not the stored one is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from apiserver.model.errors import StatusError
from apiserver.registry.builtins.catalogue import converter_of
from apiserver.registry.served import Converts, ServedKind
from apiserver.schema.defaults import copy_json

Object = dict[str, Any]


def convert(obj: Object, kind: ServedKind) -> Object:
    """`obj` in the version of `kind`; `obj` itself if it is in it already. The result may share parts with `obj`.
    Raises StatusError for a webhook that fails."""
    if obj.get("apiVersion") == kind.api_version:
        return obj
    if kind.conversion is not None:
        return _webhook(kind).convert([obj], kind)[0]
    converted = converter_of(kind)
    return converted(obj, kind.api_version) if converted is not None else {**obj, "apiVersion": kind.api_version}


def prepare(values: Iterable[bytes], kind: ServedKind) -> None:
    """Converts many stored values at once, so that converting each of them is quick afterwards. For kinds that have a
    webhook."""
    objects = (orjson.loads(value) for value in values)
    others = [obj for obj in objects if obj.get("apiVersion") != kind.api_version]
    if others:
        _webhook(kind).convert(others, kind)


def _webhook(kind: ServedKind) -> Converts:
    """Raises StatusError 501 where nobody may call it."""
    if kind.converter is None:
        why = f"objects of {kind.qualified} are converted by webhooks: here they are read in their stored version alone"
        raise StatusError(501, "NotImplemented", why)
    return kind.converter


def stored(obj: Object, kind: ServedKind) -> Object:
    """`obj` as it is kept: in `kind`, its storage version. A custom resource of another version is cut to the
    storage version's fields and gets its defaults, as it would when it is read from a store. `obj` is not changed."""
    converted = convert(obj, kind)
    if converted is obj or not kind.custom:
        return converted
    made: Object = copy_json(converted)
    bare = "status" not in made
    kind.schema.prune(made)
    kind.schema.default(made)
    if bare:
        made.pop("status", None)
    return made


def completed(obj: Object, kind: ServedKind) -> Object:
    """A stored `obj` with the defaults that its version has got since: `obj` itself, in place."""
    bare = "status" not in obj
    kind.schema.default(obj)
    if bare:
        obj.pop("status", None)
    return obj

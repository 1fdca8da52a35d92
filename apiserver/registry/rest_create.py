"""A new object: names and identity, defaults, field ownership, and what git is to have of it.

Called by rest.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from apiserver.model import clock
from apiserver.model.errors import StatusError, already_exists, invalid
from apiserver.registry import codec, room, strategy
from apiserver.registry import rest_checks as checks
from apiserver.registry.rest_common import ATTEMPTS, allocated, as_written, establish, key_of, reset, value_of
from apiserver.registry.rest_options import Collection, Object, Outcome, WriteOptions, complete_nothing
from apiserver.registry.served import ServedKind
from apiserver.registry.sinks import Write
from apiserver.schema import ownership
from apiserver.schema.defaults import copy_json
from apiserver.storage.protocol import Conflict, TooMany

T = TypeVar("T")

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_BASE_LENGTH = 58


def create(at: Collection, namespace: str, obj: Object, options: WriteOptions) -> Outcome:
    """Raises StatusError: 400 for an object that cannot be meant, 403, 404 (namespace), 409 (exists), 422."""
    checks.check_identity(at.kind, obj, namespace, "")
    metadata = obj.setdefault("metadata", {})
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    for attempt in range(8):
        made = copy_json(obj)
        if generated:
            made["metadata"]["name"] = _generated(str(metadata["generateName"]))
        try:
            return _create(at, namespace, made, options, sent=obj)
        except StatusError as error:
            if not (generated and error.reason == "AlreadyExists") or attempt == 7:
                raise
    raise AssertionError("unreachable")


def create_applied(at: Collection, namespace: str, made: Object, options: WriteOptions, *, sent: Object) -> Outcome:
    """As `create`, for what an apply made of the object `sent`, field ownership included."""
    return _create(at, namespace, made, options, sent=sent, applied=True)


def _create(
    at: Collection, namespace: str, obj: Object, options: WriteOptions, *, sent: Object, applied: bool = False
) -> Outcome:
    """`sent`: as the client sent it; `applied`: what an apply made of that, field ownership included."""
    kind = at.kind
    name = str(obj["metadata"].get("name") or "")
    at.admit("create", name, None)
    checks.check_definition(at, name)
    if not applied:
        checks.check_types(kind, obj)
    warnings = () if applied else checks.unknown_fields(at, obj, options)
    key = key_of(at, namespace, name)
    if kind.namespaced:
        obj["metadata"]["namespace"] = namespace
    meant = obj if at.complete is complete_nothing else copy_json(obj)
    at.complete(obj)
    causes = strategy.prepare_create(kind, obj)
    if causes:
        raise invalid(kind.kind, kind.group, name, causes)
    warnings += strategy.warnings(kind, None, obj)
    at.vet(obj, None)
    inside = checks.check_cluster(at, key)
    checks.check_namespace(at, key)
    establish(at, obj)
    if not applied:
        _own(kind, obj, meant, options.manager)
    _identify(at, obj)
    for _ in range(ATTEMPTS):
        if at.store.get(key) is not None:
            break
        made, also = allocated(at, key, None, obj)
        value = value_of(at, made)
        write = Write(key, None, value, also, _for_git(kind, sent, value), room=at.room(), inside=inside)
        if options.dry_run:
            _in_room(at, name, partial(at.check, write))
            return Outcome(made, created=True, warnings=warnings)
        checks.check_unversioned(sent["metadata"])  # where kube-apiserver looks: it says nothing in a dry run
        try:
            written = _in_room(at, name, lambda write=write: at.begin(write)())  # type: ignore[misc]
        except Conflict:
            inside = checks.check_cluster(at, key)
            continue
        warnings += written.warnings
        return Outcome(as_written(kind, made, written, value), created=True, warnings=warnings)
    raise already_exists(kind.resource, kind.group, name)


def _in_room(at: Collection, name: str, do: Callable[[], T]) -> T:
    """Raises StatusError 403 where the workspace has as many objects as it may."""
    try:
        return do()
    except TooMany as error:
        raise room.refusal(at.kind, name, error) from None


def _for_git(kind: ServedKind, sent: Object, value: bytes) -> Object:
    """A new object as git is to have it: as it was sent, but where reading that again would take a webhook, and under
    its own group's name."""
    if kind.conversion is None or kind.storage_version:
        return {**sent, "apiVersion": kind.own_version} if kind.spelled else sent
    return codec.decode(value, 0)


def _own(kind: ServedKind, obj: Object, meant: Object, manager: str) -> None:
    """Sets the managedFields of a new object. `meant`: without what admission completed, which nobody owns, since
    otherwise the first server-side apply by the same manager would take it away; the object itself if nothing was."""
    if meant is not obj:
        strategy.prepare_create(kind, meant)
    ownership.record_update(None, meant, kind.schema, manager, kind.own_version, clock.now(), reset=reset(kind, ""))
    if meant is not obj:
        obj["metadata"].pop("managedFields", None)
        obj["metadata"].update({k: v for k, v in meant["metadata"].items() if k == "managedFields"})


def _identify(at: Collection, obj: Object) -> None:
    """What the server alone sets on a new object."""
    metadata = obj["metadata"]
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = clock.now()
    if at.kind.generation:
        metadata["generation"] = 1
    if at.marks or at.origin:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **at.marks, **at.origin}
    if at.kind.storage == at.kind.qualified:  # a bound one is completed where it runs
        strategy.identified(at.kind, obj)


def _generated(base: str) -> str:
    return base[:_BASE_LENGTH] + "".join(random.choices(_SUFFIX, k=5))  # noqa: S311 (a name, no secret)

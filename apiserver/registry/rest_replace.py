"""A changed object: what the client made of the live one is settled, checked, and written unless nothing changed.

Called by rest for PUT, for patches and for apply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.model import clock
from apiserver.model.errors import conflict, invalid, not_found
from apiserver.model.keys import Key
from apiserver.registry import codec, keptschemas, podsubresources, strategy
from apiserver.registry import rest_checks as checks
from apiserver.registry.otherversions import others
from apiserver.registry.rest_common import ATTEMPTS, allocated, as_written, establish, live_of, reset, value_of
from apiserver.registry.rest_options import Collection, Object, Outcome, WriteOptions
from apiserver.registry.sinks import Write
from apiserver.schema import ownership
from apiserver.storage.protocol import Conflict

_SETTLE = {
    "approval": strategy.prepare_approval,
    "ephemeralcontainers": podsubresources.prepare_ephemeral,
    "finalize": strategy.prepare_finalize,
    "resize": podsubresources.prepare_resize,
    "status": strategy.prepare_status_update,
}
"""What is done to the object that a subresource's write brings; to others strategy.prepare_update."""

_ASIDE = frozenset(_SETTLE)
"""Subresources that change nothing which a manifest says."""

Change = Callable[[Object], Object]
"""Makes the new object of a copy of the live one (with metadata.resourceVersion). Raises StatusError."""


@dataclass(slots=True)
class How:
    """How a replacement is done. `applied`: field ownership is settled already; `patch`: types and unknown fields are
    looked at in the result, and what is wrong is an error of the patch."""

    options: WriteOptions
    subresource: str
    warnings: tuple[str, ...] = ()
    applied: bool = False
    patch: checks.Patched | None = None


def replace(at: Collection, key: Key, change: Change, how: How) -> Outcome:
    """Changes an object that is there, again when another writer came first. Raises StatusError: 404, 409, 422 and what
    `change` raises."""
    kind = at.kind
    for _ in range(ATTEMPTS):
        record = at.store.get(key)
        if record is None:
            raise not_found(kind.resource, kind.group, key.name)
        live = live_of(kind, record.value, record.revision)
        new = change(live_of(kind, record.value, record.revision))
        checks.check_revision(kind, key, live, new)
        if how.patch is None and not how.applied:
            checks.check_uid(kind, key, live, new)
        outcome = _settle(at, live, new, how)
        new, also = allocated(at, key, live, outcome.obj)
        same = _content(new) == _content(live)
        if same and (how.options.dry_run or not _is_old(at, record.value)):
            return Outcome(live, warnings=outcome.warnings)
        gone = checks.finished(new)
        value = None if gone else value_of(at, new)
        also = [*also, *keptschemas.keeping(at.store, [record])] if gone else also
        write = Write(key, record, value, also, aside=same or how.subresource in _ASIDE)
        if how.options.dry_run:
            at.check(write)
            return Outcome(new, removed=gone, warnings=outcome.warnings)
        try:
            written = at.begin(write)()
        except Conflict:
            continue
        warnings = outcome.warnings + written.warnings
        return Outcome(as_written(kind, new, written, value), removed=gone, warnings=warnings)
    raise conflict(kind.resource, kind.group, key.name)


def _settle(at: Collection, live: Object, new: Object, how: How) -> Outcome:
    """The object to store of what the client made: what it may not change is put back, the rest is checked."""
    kind = at.kind
    warnings = how.warnings
    if how.patch:
        checks.check_types(kind, new, how.patch)
        warnings = checks.unknown_fields(at, new, how.options, how.patch)
    settle = _SETTLE.get(how.subresource, strategy.prepare_update)
    causes = settle(kind, live, new)
    if causes:
        raise invalid(kind.kind, kind.group, live["metadata"]["name"], causes)
    warnings += strategy.warnings(kind, live, new)
    at.vet(new, live)
    new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    if not how.subresource:
        establish(at, new)
    if not how.applied:
        ownership.record_update(
            live, new, kind.schema, how.options.manager, kind.own_version, clock.now(), how.subresource,
            reset(kind, how.subresource), others(at.kinds, kind),
        )  # fmt: skip
    return Outcome(new, warnings=warnings)


def _is_old(at: Collection, value: bytes) -> bool:
    """Whether a custom resource is kept in a version that is not its storage version any more: then a write that
    changes nothing else changes that, which is how clients move objects on."""
    if not at.kind.custom:
        return False
    return bool(codec.decode(value, 0).get("apiVersion") != at.storage_kind.api_version)


def _content(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}

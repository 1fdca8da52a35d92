"""The generic write path: create, update, patch and apply over one kind in one logical cluster.

Called by the endpoints for API requests. It does what kube-apiserver does to any object: names and identity, optimistic
concurrency, status apart from the rest, generation, field ownership, and no write where nothing changed. What is
particular to a kind (defaults, validation) is strategy.py's; deletion is deletion.py's. Synchronous: it waits for the
store, so the endpoints call it in a thread.
"""

from __future__ import annotations

from apiserver.model import clock
from apiserver.model.errors import Cause, StatusError, conflict, invalid, not_found
from apiserver.registry import codec, strategy
from apiserver.registry import rest_checks as checks
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.otherversions import others
from apiserver.registry.rest_common import ATTEMPTS, key_of, reset
from apiserver.registry.rest_create import create, create_applied
from apiserver.registry.rest_options import Collection, Object, Outcome, WriteOptions
from apiserver.registry.rest_replace import Change, How, replace
from apiserver.schema import ownership
from apiserver.schema.defaults import copy_json
from apiserver.storage.protocol import Record

__all__ = ["apply", "create", "patch", "update"]

CREATE_ON_UPDATE = having(lambda kind: kind.put_creates)
"""PUT of an absent object creates these; of others it is a 404."""

REVISION_REQUIRED = having(lambda kind: kind.put_revised)
"""Kubernetes' own kinds whose PUT needs a resourceVersion, as that of every custom resource does."""


def update(
    at: Collection, namespace: str, name: str, obj: Object, options: WriteOptions, subresource: str = ""
) -> Outcome:
    """PUT. Raises StatusError as `create` does, and 409 for a resourceVersion or uid that is not the live object's."""
    kind = at.kind
    checks.check_identity(kind, obj, namespace, name)
    metadata = obj.setdefault("metadata", {})
    metadata.setdefault("name", name)
    asked = checks.asked_revision(metadata)
    live = at.store.get(key_of(at, namespace, name))
    if live is None and not subresource and not asked and kind.qualified in CREATE_ON_UPDATE:
        return create(at, namespace, obj, options)
    if live is None:
        raise not_found(kind.resource, kind.group, name)
    if not asked and (kind.custom or kind.qualified in REVISION_REQUIRED):
        why = "Invalid value: 0: must be specified for an update"
        causes = [Cause("FieldValueInvalid", why, "metadata.resourceVersion")]
        raise invalid(kind.resource, kind.group, name, causes)  # names the resource, as kube-apiserver does
    _admit(at, "update", name, live, subresource)
    checks.check_types(kind, obj)
    warnings = checks.unknown_fields(at, obj, options)
    return replace(at, key_of(at, namespace, name), lambda _: copy_json(obj), How(options, subresource, warnings))


def patch(
    at: Collection,
    namespace: str,
    name: str,
    change: Change,
    options: WriteOptions,
    subresource: str = "",
    strategic: Object | None = None,
) -> Outcome:
    """`change` applies a patch (merge, JSON, strategic) to a copy of the live object; it is called again when another
    writer came first. `strategic`: the patch, if it is a strategic one."""
    live = at.store.get(key_of(at, namespace, name))
    if live is None:
        raise not_found(at.kind.resource, at.kind.group, name)
    _admit(at, "patch", name, live, subresource)

    def changed(obj: Object) -> Object:
        new = change(obj)
        checks.check_identity(at.kind, new, namespace, name)
        return new

    return replace(at, key_of(at, namespace, name), changed, How(options, subresource, patch=checks.Patched(strategic)))


def apply(
    at: Collection, namespace: str, name: str, applied: Object, options: WriteOptions, subresource: str = ""
) -> Outcome:
    """Server-side apply: creates what is absent. Raises StatusError 409 with the conflicts unless `options.force`."""
    kind = at.kind
    checks.check_applied(kind, applied, namespace, name)
    named = {"metadata": dict(applied.get("metadata") or {})}
    metadata = applied.setdefault("metadata", {})
    metadata["name"] = name
    if kind.namespaced:
        metadata["namespace"] = namespace
    asked = checks.asked_revision({"resourceVersion": metadata.pop("resourceVersion", "")})
    how = ownership.ApplyOptions(
        options.manager, options.force, kind.own_version, clock.now(), subresource, reset(kind, subresource),
        others(at.kinds, kind),
    )  # fmt: skip
    for _ in range(ATTEMPTS):
        live = at.store.get(key_of(at, namespace, name))
        if live is None:
            if subresource:
                raise not_found(kind.resource, kind.group, name)
            made = ownership.apply(None, applied, kind.schema, how)
            checks.check_creation(kind, name, named)
            try:
                return create_applied(at, namespace, made, options, sent=applied)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                continue
        _admit(at, "patch", name, live, subresource)
        if asked and asked != str(live.revision):
            raise conflict(kind.resource, kind.group, name)

        def changed(obj: Object) -> Object:
            new = ownership.apply(obj, applied, kind.schema, how)
            new["metadata"] |= {f: metadata[f] for f in strategy.IDENTITY if f in metadata}
            return new

        return replace(at, key_of(at, namespace, name), changed, How(options, subresource, applied=True))
    raise conflict(kind.resource, kind.group, name)


def _admit(at: Collection, verb: str, name: str, live: Record, subresource: str) -> None:
    if subresource not in ("approval", "status"):
        at.admit(verb, name, codec.decode(live.value, live.revision))

"""The generic write path: create, update, patch and apply over one kind in one logical cluster.

Called by the endpoints for API requests. It does what kube-apiserver does to any object: names and identity, optimistic
concurrency, status apart from the rest, generation, field ownership, and no write where nothing changed. What is
particular to a kind (defaults, validation) is strategy.py's; deletion is deletion.py's. Synchronous: it waits for the
store, so the endpoints call it in a thread.
"""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Callable

from apiserver.model import clock
from apiserver.model.errors import (
    Cause,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from apiserver.model.keys import Key
from apiserver.registry import codec, strategy
from apiserver.registry.conversion import convert
from apiserver.registry.rest_options import IGNORE, STRICT, Collection, Object, Outcome, WriteOptions
from apiserver.registry.served import ServedKind
from apiserver.schema import ownership
from apiserver.storage.protocol import NEVER, Conflict, Delete, Put

_ATTEMPTS = 20
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_BASE_LENGTH = 58

CREATE_ON_UPDATE = frozenset(
    {
        "endpoints",
        "events",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
        "limitranges",
        "services",
        "runtimeclasses.node.k8s.io",
        "roles.rbac.authorization.k8s.io",
        "rolebindings.rbac.authorization.k8s.io",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrolebindings.rbac.authorization.k8s.io",
    }
)
"""PUT of an absent object creates these; of others it is a 404."""

REVISION_REQUIRED = frozenset(
    {
        "leases.coordination.k8s.io",
        "runtimeclasses.node.k8s.io",
        "poddisruptionbudgets.policy",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Kubernetes' own kinds whose PUT needs a resourceVersion, as that of every custom resource does."""

Change = Callable[[Object], Object]
"""Makes the new object of a copy of the live one (with metadata.resourceVersion). Raises StatusError."""


def create(at: Collection, namespace: str, obj: Object, options: WriteOptions) -> Outcome:
    """Raises StatusError: 400 for an object that cannot be meant, 403, 404 (namespace), 409 (exists), 422."""
    check_identity(at.kind, obj, namespace, "")
    metadata = obj.setdefault("metadata", {})
    if metadata.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    generated = not metadata.get("name") and bool(metadata.get("generateName"))
    for attempt in range(8):
        made = copy.deepcopy(obj)
        if generated:
            made["metadata"]["name"] = _generated(str(metadata["generateName"]))
        try:
            return _create(at, namespace, made, options)
        except StatusError as error:
            if not (generated and error.reason == "AlreadyExists") or attempt == 7:
                raise
    raise AssertionError("unreachable")


def _create(at: Collection, namespace: str, obj: Object, options: WriteOptions, *, applied: bool = False) -> Outcome:
    kind = at.kind
    name = str(obj["metadata"].get("name") or "")
    if not options.dry_run:
        at.admit("create", name, None)
    warnings = () if applied else _unknown_fields(at, obj, options, patch=False)
    key = _key(at, namespace, name)
    if kind.namespaced:
        obj["metadata"]["namespace"] = namespace
    causes = strategy.prepare_create(kind, obj)
    if causes:
        raise invalid(kind.kind, kind.group, name, causes)
    _check_namespace(at, key)
    if not applied:
        ownership.record_update(
            None, obj, kind.schema, options.manager, kind.api_version, clock.now(), reset=_reset(kind, "")
        )
    _identify(at, obj)
    if at.store.get(key) is not None:
        raise already_exists(kind.resource, kind.group, name)
    if options.dry_run:
        return Outcome(obj, created=True, warnings=warnings)
    value = codec.encode(convert(obj, at.storage_kind))
    try:
        [revision] = at.store.write(Put(key, value, NEVER)).result()
    except Conflict:
        raise already_exists(kind.resource, kind.group, name) from None
    return Outcome(_at_revision(obj, revision), created=True, warnings=warnings)


def update(
    at: Collection, namespace: str, name: str, obj: Object, options: WriteOptions, subresource: str = ""
) -> Outcome:
    """PUT. Raises StatusError as `create` does, and 409 for a resourceVersion or uid that is not the live object's."""
    kind = at.kind
    check_identity(kind, obj, namespace, name)
    metadata = obj.setdefault("metadata", {})
    metadata.setdefault("name", name)
    asked = str(metadata.get("resourceVersion") or "")
    live = at.store.get(_key(at, namespace, name))
    if live is None and not subresource and not asked and kind.qualified in CREATE_ON_UPDATE:
        return create(at, namespace, obj, options)
    if live is None:
        raise not_found(kind.resource, kind.group, name)
    if not asked and (kind.custom or kind.qualified in REVISION_REQUIRED):
        why = "Invalid value: 0: must be specified for an update"
        raise invalid(kind.kind, kind.group, name, [Cause("FieldValueInvalid", why, "metadata.resourceVersion")])
    _admit(at, "update", name, live.value, live.revision, options, subresource)
    warnings = _unknown_fields(at, obj, options, patch=False)
    return _replace(at, _key(at, namespace, name), lambda _: copy.deepcopy(obj), _How(options, subresource, warnings))


def patch(
    at: Collection, namespace: str, name: str, change: Change, options: WriteOptions, subresource: str = ""
) -> Outcome:
    """`change` applies a patch (merge, JSON, strategic) to a copy of the live object; it is called again when another
    writer came first."""
    live = at.store.get(_key(at, namespace, name))
    if live is None:
        raise not_found(at.kind.resource, at.kind.group, name)
    _admit(at, "patch", name, live.value, live.revision, options, subresource)

    def changed(obj: Object) -> Object:
        new = change(obj)
        check_identity(at.kind, new, namespace, name)
        return new

    return _replace(at, _key(at, namespace, name), changed, _How(options, subresource, patch=True))


def apply(
    at: Collection, namespace: str, name: str, applied: Object, options: WriteOptions, subresource: str = ""
) -> Outcome:
    """Server-side apply: creates what is absent. Raises StatusError 409 with the conflicts unless `options.force`."""
    kind = at.kind
    _check_applied(kind, applied, namespace, name)
    metadata = applied.setdefault("metadata", {})
    metadata["name"] = name
    if kind.namespaced:
        metadata["namespace"] = namespace
    asked = str(metadata.pop("resourceVersion", "") or "")
    how = ownership.ApplyOptions(
        options.manager, options.force, kind.api_version, clock.now(), subresource, reset=_reset(kind, subresource)
    )
    for _ in range(_ATTEMPTS):
        live = at.store.get(_key(at, namespace, name))
        if live is None:
            if subresource or asked:
                raise not_found(kind.resource, kind.group, name)
            made = ownership.apply(None, applied, kind.schema, how)
            try:
                return _create(at, namespace, made, options, applied=True)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                continue
        _admit(at, "patch", name, live.value, live.revision, options, subresource)
        if asked and asked != str(live.revision):
            raise conflict(kind.resource, kind.group, name)

        def changed(obj: Object) -> Object:
            return ownership.apply(obj, applied, kind.schema, how)

        return _replace(at, _key(at, namespace, name), changed, _How(options, subresource, applied=True))
    raise conflict(kind.resource, kind.group, name)


class _How:
    """How a replacement is done. `applied`: field ownership is settled already; `patch`: unknown fields are looked for
    in the result, and are then errors of the patch."""

    __slots__ = ("applied", "options", "patch", "subresource", "warnings")

    def __init__(
        self,
        options: WriteOptions,
        subresource: str,
        warnings: tuple[str, ...] = (),
        *,
        applied: bool = False,
        patch: bool = False,
    ) -> None:
        self.options = options
        self.subresource = subresource
        self.warnings = warnings
        self.applied = applied
        self.patch = patch


def _replace(at: Collection, key: Key, change: Change, how: _How) -> Outcome:
    kind = at.kind
    for _ in range(_ATTEMPTS):
        record = at.store.get(key)
        if record is None:
            raise not_found(kind.resource, kind.group, key.name)
        live = _live(kind, record.value, record.revision)
        new = change(copy.deepcopy(live))
        _check_revision(kind, key, live, new)
        outcome = _settle(at, live, new, how)
        new = outcome.obj
        if _content(new) == _content(live):
            return Outcome(live, warnings=outcome.warnings)
        gone = finished(new)
        if how.options.dry_run:
            return Outcome(new, removed=gone, warnings=outcome.warnings)
        op = Delete(key, record.revision) if gone else Put(key, _stored(at, new), record.revision)
        try:
            [revision] = at.store.write(op).result()
        except Conflict:
            continue
        return Outcome(_at_revision(new, revision), removed=gone, warnings=outcome.warnings)
    raise conflict(kind.resource, kind.group, key.name)


def _settle(at: Collection, live: Object, new: Object, how: _How) -> Outcome:
    """The object to store of what the client made: what it may not change is put back, the rest is checked."""
    kind = at.kind
    warnings = how.warnings
    if how.patch:
        warnings = _unknown_fields(at, new, how.options, patch=True)
    settle = strategy.prepare_status_update if how.subresource == "status" else strategy.prepare_update
    causes = settle(kind, live, new)
    if causes:
        raise invalid(kind.kind, kind.group, live["metadata"]["name"], causes)
    new["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
    if not how.applied:
        ownership.record_update(
            live, new, kind.schema, how.options.manager, kind.api_version, clock.now(), how.subresource,
            _reset(kind, how.subresource),
        )  # fmt: skip
    return Outcome(new, warnings=warnings)


def _identify(at: Collection, obj: Object) -> None:
    """What the server alone sets on a new object."""
    metadata = obj["metadata"]
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = clock.now()
    if at.kind.generation:
        metadata["generation"] = 1
    if at.marks or at.origin:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **at.marks, **at.origin}


def check_identity(kind: ServedKind, obj: Object, namespace: str, name: str) -> None:
    """Kind, version, namespace and name of the body against the URL. Raises StatusError 400."""
    found_kind, version = obj.get("kind"), obj.get("apiVersion")
    if kind.custom and not found_kind:
        text = codec.dump(obj).decode()
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object 'Kind' is missing in '{text}'"
        )
    if (found_kind and found_kind != kind.kind) or (version and version != kind.api_version):
        given, wanted = f"{version}, Kind={found_kind}", f"{kind.api_version}, Kind={kind.kind}"
        raise bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"the object provided is {given}, not {wanted}"
        )
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                          "metadata is not an object")  # fmt: skip
    metadata = metadata or {}
    if kind.namespaced and metadata.get("namespace") not in (None, "", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if not kind.namespaced and metadata.get("namespace"):
        raise bad_request("namespace may not be set on objects that are not namespaced")
    if name and metadata.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    obj.setdefault("kind", kind.kind)
    obj.setdefault("apiVersion", kind.api_version)


def _check_applied(kind: ServedKind, applied: Object, namespace: str, name: str) -> None:
    for field in ("apiVersion", "kind"):
        if not applied.get(field):
            raise bad_request(f"the applied object has no {field}")
    check_identity(kind, applied, namespace, name)
    if (applied.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")


def _check_revision(kind: ServedKind, key: Key, live: Object, new: Object) -> None:
    metadata = new.get("metadata") or {}
    asked = str(metadata.get("resourceVersion") or "")
    if asked and asked != live["metadata"]["resourceVersion"]:
        raise conflict(kind.resource, kind.group, key.name)
    uid = metadata.get("uid")
    if uid and uid != live["metadata"].get("uid"):
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {live['metadata'].get('uid')}"
        raise conflict(kind.resource, kind.group, key.name, why)


def _check_namespace(at: Collection, key: Key) -> None:
    """The namespace of a new object has to exist and to stay."""
    if not key.namespace:
        return
    found = at.store.get(Key("namespaces", at.cluster, "", key.namespace))
    if found is None:
        raise not_found("namespaces", "", key.namespace)
    if codec.decode(found.value, found.revision)["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
        error = forbidden(at.kind.resource, at.kind.group, key.name, why)
        message = f"namespace {key.namespace} is being terminated"
        error.details["causes"] = [
            {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        ]
        raise error


def _unknown_fields(at: Collection, obj: Object, options: WriteOptions, *, patch: bool) -> tuple[str, ...]:
    """Warnings for fields that nobody knows; with STRICT they are an error."""
    if options.validation == IGNORE:
        return ()
    unknown = [f'unknown field "{f}"' for f in strategy.unknown_fields(at.kind, obj)]
    if not unknown or options.validation != STRICT:
        return tuple(unknown)
    raise strict_error(at.kind, ", ".join(unknown), codec.dump(obj).decode() if patch else None)


def strict_error(kind: ServedKind, what: str, patched: str | None = None) -> StatusError:
    """For fields that are unknown or there twice. `patched`: the patched object, if a patch was sent."""
    if patched is None:
        return bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {what}'
        )
    why = f'Invalid value: "{patched}": strict decoding error: {what}'
    return invalid("", "", "", [Cause("FieldValueInvalid", why, "patch")])


def _admit(
    at: Collection, verb: str, name: str, value: bytes, revision: int, options: WriteOptions, subresource: str
) -> None:
    if not options.dry_run and subresource != "status":
        at.admit(verb, name, codec.decode(value, revision))


def _key(at: Collection, namespace: str, name: str) -> Key:
    return Key(at.kind.storage, at.cluster, namespace if at.kind.namespaced else "", name)


def _live(kind: ServedKind, value: bytes, revision: int) -> Object:
    return convert(codec.decode(value, revision), kind)


def _stored(at: Collection, obj: Object) -> bytes:
    return codec.encode(convert(obj, at.storage_kind))


def _at_revision(obj: Object, revision: int) -> Object:
    obj["metadata"]["resourceVersion"] = str(revision)
    return obj


def _reset(kind: ServedKind, subresource: str) -> tuple[str, ...]:
    """Fields that an endpoint leaves to the status subresource."""
    return ("status",) if "status" in kind.subresources and subresource != "status" else ()


def _content(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}


def finished(obj: Object) -> bool:
    """Whether a deletion that waited for finalizers is complete."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    return not (obj["kind"] == "Namespace" and (obj.get("spec") or {}).get("finalizers"))


def _generated(base: str) -> str:
    return base[:_BASE_LENGTH] + "".join(random.choices(_SUFFIX, k=5))  # noqa: S311 (a name, no secret)

"""The generic write path: create, update, patch and apply over one kind in one logical cluster.

Called by the endpoints for API requests. It does what kube-apiserver does to any object: names and identity, optimistic
concurrency, status apart from the rest, generation, field ownership, and no write where nothing changed. What is
particular to a kind (defaults, validation) is strategy.py's; deletion is deletion.py's. Synchronous: it waits for the
store, so the endpoints call it in a thread.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable

from apiserver.model import clock
from apiserver.model.errors import (
    Cause,
    StatusError,
    already_exists,
    conflict,
    invalid,
    not_found,
)
from apiserver.model.keys import Key
from apiserver.registry import allocation, codec, podsubresources, strategy
from apiserver.registry import rest_checks as checks
from apiserver.registry.conversion import completed, convert, stored
from apiserver.registry.otherversions import others
from apiserver.registry.rest_options import Collection, Object, Outcome, WriteOptions, complete_nothing
from apiserver.registry.served import ServedKind
from apiserver.registry.sinks import Write, Written
from apiserver.schema import ownership
from apiserver.schema.defaults import copy_json
from apiserver.storage.protocol import Conflict, Op

_ATTEMPTS = 20
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_BASE_LENGTH = 58

CRDS = "customresourcedefinitions.apiextensions.k8s.io"

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
        CRDS,
        "apiservices.apiregistration.k8s.io",
        "leases.coordination.k8s.io",
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "runtimeclasses.node.k8s.io",
        "poddisruptionbudgets.policy",
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
"""Kubernetes' own kinds whose PUT needs a resourceVersion, as that of every custom resource does."""

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


def _create(
    at: Collection, namespace: str, obj: Object, options: WriteOptions, *, sent: Object, applied: bool = False
) -> Outcome:
    """`sent`: as the client sent it; `applied`: what an apply made of that, field ownership included."""
    kind = at.kind
    name = str(obj["metadata"].get("name") or "")
    if not options.dry_run:
        at.admit("create", name, None)
    if not applied:
        checks.check_types(kind, obj)
    warnings = () if applied else checks.unknown_fields(at, obj, options)
    key = _key(at, namespace, name)
    if kind.namespaced:
        obj["metadata"]["namespace"] = namespace
    meant = obj if at.complete is complete_nothing else copy_json(obj)
    at.complete(obj)
    causes = strategy.prepare_create(kind, obj)
    if causes:
        raise invalid(kind.kind, kind.group, name, causes)
    warnings += strategy.warnings(kind, None, obj)
    at.vet(obj, None)
    checks.check_namespace(at, key)
    checks.check_definition(at, name)
    _establish(at, obj)
    if not applied:
        _own(kind, obj, meant, options.manager)
    _identify(at, obj)
    for _ in range(_ATTEMPTS):
        if at.store.get(key) is not None:
            break
        made, also = _allocated(at, key, None, obj)
        if options.dry_run:
            return Outcome(made, created=True, warnings=warnings)
        checks.check_unversioned(sent["metadata"])  # where kube-apiserver looks: it says nothing in a dry run
        try:
            value = _stored(at, made)
            written = at.begin(Write(key, None, value, also, _for_git(kind, sent, value)))()
        except Conflict:
            continue
        return Outcome(_as_written(kind, made, written, value), created=True, warnings=warnings)
    raise already_exists(kind.resource, kind.group, name)


def _for_git(kind: ServedKind, sent: Object, value: bytes) -> Object:
    """A new object as git is to have it: as it was sent, but where reading that again would take a webhook."""
    if kind.conversion is None or kind.storage_version:
        return sent
    return codec.decode(value, 0)


def _own(kind: ServedKind, obj: Object, meant: Object, manager: str) -> None:
    """Sets the managedFields of a new object. `meant`: without what admission completed, which nobody owns, since
    otherwise the first server-side apply by the same manager would take it away; the object itself if nothing was."""
    if meant is not obj:
        strategy.prepare_create(kind, meant)
    ownership.record_update(None, meant, kind.schema, manager, kind.api_version, clock.now(), reset=_reset(kind, ""))
    if meant is not obj:
        obj["metadata"].pop("managedFields", None)
        obj["metadata"].update({k: v for k, v in meant["metadata"].items() if k == "managedFields"})


def _allocated(at: Collection, key: Key, live: Object | None, obj: Object) -> tuple[Object, list[Op]]:
    """The object with what its cluster allocates, and the operations that go with its write."""
    if not allocation.allocates(at.kinds, at.kind.storage):
        return obj, []
    made = copy_json(obj)
    return made, allocation.settle(at.store, key, live, made)


def update(
    at: Collection, namespace: str, name: str, obj: Object, options: WriteOptions, subresource: str = ""
) -> Outcome:
    """PUT. Raises StatusError as `create` does, and 409 for a resourceVersion or uid that is not the live object's."""
    kind = at.kind
    checks.check_identity(kind, obj, namespace, name)
    metadata = obj.setdefault("metadata", {})
    metadata.setdefault("name", name)
    asked = checks.asked_revision(metadata)
    live = at.store.get(_key(at, namespace, name))
    if live is None and not subresource and not asked and kind.qualified in CREATE_ON_UPDATE:
        return create(at, namespace, obj, options)
    if live is None:
        raise not_found(kind.resource, kind.group, name)
    if not asked and (kind.custom or kind.qualified in REVISION_REQUIRED):
        why = "Invalid value: 0: must be specified for an update"
        causes = [Cause("FieldValueInvalid", why, "metadata.resourceVersion")]
        raise invalid(kind.resource, kind.group, name, causes)  # names the resource, as kube-apiserver does
    _admit(at, "update", name, live.value, live.revision, options, subresource)
    checks.check_types(kind, obj)
    warnings = checks.unknown_fields(at, obj, options)
    return _replace(at, _key(at, namespace, name), lambda _: copy_json(obj), _How(options, subresource, warnings))


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
    live = at.store.get(_key(at, namespace, name))
    if live is None:
        raise not_found(at.kind.resource, at.kind.group, name)
    _admit(at, "patch", name, live.value, live.revision, options, subresource)

    def changed(obj: Object) -> Object:
        new = change(obj)
        checks.check_identity(at.kind, new, namespace, name)
        return new

    return _replace(at, _key(at, namespace, name), changed, _How(options, subresource, patch=checks.Patched(strategic)))


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
        options.manager, options.force, kind.api_version, clock.now(), subresource, _reset(kind, subresource),
        others(at.kinds, kind),
    )  # fmt: skip
    for _ in range(_ATTEMPTS):
        live = at.store.get(_key(at, namespace, name))
        if live is None:
            if subresource:
                raise not_found(kind.resource, kind.group, name)
            made = ownership.apply(None, applied, kind.schema, how)
            checks.check_creation(kind, name, named)
            try:
                return _create(at, namespace, made, options, sent=applied, applied=True)
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    raise
                continue
        _admit(at, "patch", name, live.value, live.revision, options, subresource)
        if asked and asked != str(live.revision):
            raise conflict(kind.resource, kind.group, name)

        def changed(obj: Object) -> Object:
            new = ownership.apply(obj, applied, kind.schema, how)
            new["metadata"] |= {f: metadata[f] for f in strategy.IDENTITY if f in metadata}
            return new

        return _replace(at, _key(at, namespace, name), changed, _How(options, subresource, applied=True))
    raise conflict(kind.resource, kind.group, name)


class _How:
    """How a replacement is done. `applied`: field ownership is settled already; `patch`: types and unknown fields are
    looked at in the result, and what is wrong is an error of the patch."""

    __slots__ = ("applied", "options", "patch", "subresource", "warnings")

    def __init__(
        self,
        options: WriteOptions,
        subresource: str,
        warnings: tuple[str, ...] = (),
        *,
        applied: bool = False,
        patch: checks.Patched | None = None,
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
        new = change(_live(kind, record.value, record.revision))
        checks.check_revision(kind, key, live, new)
        if how.patch is None and not how.applied:
            checks.check_uid(kind, key, live, new)
        outcome = _settle(at, live, new, how)
        new, also = _allocated(at, key, live, outcome.obj)
        same = _content(new) == _content(live)
        if same and (how.options.dry_run or not _is_old(at, record.value)):
            return Outcome(live, warnings=outcome.warnings)
        gone = checks.finished(new)
        if how.options.dry_run:
            return Outcome(new, removed=gone, warnings=outcome.warnings)
        value = None if gone else _stored(at, new)
        try:
            written = at.begin(Write(key, record, value, also, aside=same or how.subresource in _ASIDE))()
        except Conflict:
            continue
        return Outcome(_as_written(kind, new, written, value), removed=gone, warnings=outcome.warnings)
    raise conflict(kind.resource, kind.group, key.name)


def _settle(at: Collection, live: Object, new: Object, how: _How) -> Outcome:
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
        _establish(at, new)
    if not how.applied:
        ownership.record_update(
            live, new, kind.schema, how.options.manager, kind.api_version, clock.now(), how.subresource,
            _reset(kind, how.subresource), others(at.kinds, kind),
        )  # fmt: skip
    return Outcome(new, warnings=warnings)


def _establish(at: Collection, obj: Object) -> None:
    """A CustomResourceDefinition is judged in the same write, so that it is served as soon as it is answered."""
    if at.kind.qualified == CRDS:
        obj["status"] = strategy.crd_status(obj, clock.now())


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


def _admit(
    at: Collection, verb: str, name: str, value: bytes, revision: int, options: WriteOptions, subresource: str
) -> None:
    if not options.dry_run and subresource not in ("approval", "status"):
        at.admit(verb, name, codec.decode(value, revision))


def _key(at: Collection, namespace: str, name: str) -> Key:
    return Key(at.kind.storage, at.cluster, namespace if at.kind.namespaced else "", name)


def _live(kind: ServedKind, value: bytes, revision: int) -> Object:
    obj = codec.decode(value, revision)
    if kind.custom and kind.schema.has_defaults and obj.get("apiVersion") == kind.api_version:
        return completed(obj, kind)
    return convert(obj, kind)


def _is_old(at: Collection, value: bytes) -> bool:
    """Whether a custom resource is kept in a version that is not its storage version any more: then a write that
    changes nothing else changes that, which is how clients move objects on."""
    if not at.kind.custom:
        return False
    return bool(codec.decode(value, 0).get("apiVersion") != at.storage_kind.api_version)


def _stored(at: Collection, obj: Object) -> bytes:
    return codec.encode(stored(obj, at.storage_kind))


def _as_written(kind: ServedKind, obj: Object, written: Written, value: bytes | None) -> Object:
    """The object as it is stored now. `obj`: as it was to be; `value`: what it came to in its storage version."""
    if written.value is not None:
        return _live(kind, written.value, written.revision)
    if value is not None and kind.conversion is not None and not kind.storage_version:
        return _live(kind, value, written.revision)  # a webhook need not give back what it was given
    obj["metadata"]["resourceVersion"] = str(written.revision)
    return obj


def _reset(kind: ServedKind, subresource: str) -> tuple[str, ...]:
    """Fields that an endpoint leaves to the status subresource."""
    return ("status",) if "status" in kind.subresources and subresource not in ("approval", "status") else ()


def _content(obj: Object) -> Object:
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}


def _generated(base: str) -> str:
    return base[:_BASE_LENGTH] + "".join(random.choices(_SUFFIX, k=5))  # noqa: S311 (a name, no secret)

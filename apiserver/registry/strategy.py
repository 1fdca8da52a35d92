"""What is done to an object before it is stored, the same for git and for writes through the API.

`unknown_fields` and `prepare` serve both. `prepare_create`, `prepare_update` and `prepare_status_update` are for API
writes: they also settle what a client may not set. Nothing here reads or writes a store; what needs other objects
(namespaces, quotas, escalation) is admission's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model import marks
from apiserver.model.errors import Cause
from apiserver.model.storagenames import CRDS
from apiserver.registry import metadata as rules
from apiserver.registry import spellings
from apiserver.registry.behaviours import certificates
from apiserver.registry.behaviours.base import IMMUTABLE, carries_nothing
from apiserver.registry.behaviours.definitions import CRD_CONDITIONS, crd_check, crd_status
from apiserver.registry.behaviours.versions import documented
from apiserver.registry.builtins.catalogue import ENTRIES, behaviour_of, having
from apiserver.registry.generation import spec_changed
from apiserver.registry.schemas import metadata_schema
from apiserver.registry.served import ServedKind
from apiserver.schema import messages
from apiserver.schema.defaults import copy_json

__all__ = [
    "CRD_CONDITIONS",
    "any_text",
    "carried",
    "check_crd",
    "crd_status",
    "identified",
    "in_manifest",
    "keep_marks",
    "prepare",
    "prepare_approval",
    "prepare_create",
    "prepare_finalize",
    "prepare_status_update",
    "prepare_update",
    "reset_status_on_create",
    "unknown_fields",
    "warnings",
]

Object = dict[str, Any]

_SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")
IDENTITY = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
"""What a client may say again and never change."""
_MARKS = (marks.CLUSTER, marks.SOURCE_PATH, marks.SOURCE_COMMIT, marks.ORIGIN, *marks.DECISIONS)
_STATUS_TAKES = {name: kind.status_takes for name, kind in ENTRIES.items()}
"""Of Kubernetes' kinds: the metadata that comes with a status."""
_STATUS_CREATED = having(lambda kind: kind.status_created)
_LABELS_COUNT = having(lambda kind: kind.labels_count)


def unknown_fields(kind: ServedKind, obj: Object) -> list[str]:
    """Paths of the fields that `prepare` would drop (`spec.nope`), sorted. `obj` is not changed."""
    found = kind.schema.unknown(obj)
    if kind.custom and isinstance(obj.get("metadata"), dict):
        found += [f"metadata.{field}" for field in metadata_schema().unknown(obj["metadata"])]
    for path, metadata in _embedded(kind, obj):
        found += [f"{path}.{field}" for field in metadata_schema().unknown(metadata)]
    return sorted(found)


def drop_unknown(kind: ServedKind, obj: Object) -> None:
    """Drops, in place, what `unknown_fields` names."""
    _drop_content(kind, obj)
    metadata_schema().prune(obj["metadata"])


def _drop_content(kind: ServedKind, obj: Object) -> None:
    """Of everything but the object's own metadata."""
    kind.schema.prune(obj)
    for _, metadata in _embedded(kind, obj):
        metadata_schema().prune(metadata)


def _embedded(kind: ServedKind, obj: Object) -> Iterator[tuple[str, Object]]:
    """The metadata of objects that stand in a custom resource, each with its path."""
    for path, inner in kind.schema.embedded(obj):
        metadata = inner.get("metadata")
        if isinstance(metadata, dict):
            yield f"{path}.metadata", metadata


def in_manifest(kind: ServedKind, field: str) -> str:
    """Where a manifest has the field that a Cause names: kube-apiserver says some of them in its own terms."""
    return documented(field) if kind.qualified == CRDS else field


def any_text(kind: ServedKind) -> frozenset[str]:
    """Fields whose values are texts that `prepare` takes as they are, whatever they say: see Behaviour.any_text."""
    return behaviour_of(kind).any_text


def warnings(kind: ServedKind, old: Object | None, new: Object) -> tuple[str, ...]:
    """What is told to whoever writes `new`, prepared without errors, in place of `old`."""
    about_metadata = rules.warnings(kind, (old or {}).get("metadata") or {}, new["metadata"])
    return (*about_metadata, *behaviour_of(kind).warnings(old, new))


def prepare(kind: ServedKind, obj: Object, old: Object | None = None, *, declared: bool = True) -> list[Cause]:
    """Makes `obj` what would be stored, in place, and gives all its field errors; with errors it may be half done.
    `old`: what a client updates, so that it need not send everything again, and so that what was wrong with a custom
    resource before does not stand in its way. `declared`: in a manifest, which does not speak of the status. An object
    written through the API has at least the status that its schema begins with.

    Drops unknown fields, sets apiVersion, kind and defaults, normalises (Secret.stringData, quantities), validates
    name, metadata, schema and the kind's own rules. Doing it twice is doing it once.
    """
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    causes = _metadata(kind, obj)
    silent = declared and "status" not in obj
    _drop_content(kind, obj)
    kind.schema.default(obj)
    if silent:
        obj.pop("status", None)  # the schema's empty one would stand in the way of what is observed later
    wrong = kind.schema.validate(obj, old=old if kind.custom else None)
    if not kind.custom and not wrong:
        wrong = spellings.normalise(obj, kind.schema.root)
    if wrong or any(c.reason == "FieldValueTypeInvalid" for c in causes):
        return causes + wrong
    behaviour = behaviour_of(kind)
    behaviour.default(obj)
    if old is not None:
        behaviour.carry(old, obj)
    return causes + behaviour.check(obj)


def _metadata(kind: ServedKind, obj: Object) -> list[Cause]:
    metadata = obj.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        obj["metadata"] = {}
        return [messages.type_invalid("metadata", "object", type(metadata).__name__)]
    schema = metadata_schema()
    schema.prune(metadata)
    schema.default(metadata)
    rules.normalise(metadata)
    wrong = schema.validate(metadata, "metadata")
    return wrong or rules.check(kind, metadata)


def check_crd(crd: Object) -> list[Cause]:
    """Errors of a CustomResourceDefinition that has its defaults: names, versions, structural schemas."""
    return crd_check(crd)


def reset_status_on_create(kind: ServedKind, obj: Object) -> None:
    """A status that a client sends with a new object does not count where there is a status subresource. But a Node's
    does: its kubelet creates it."""
    if "status" in kind.subresources and kind.qualified not in _STATUS_CREATED:
        obj.pop("status", None)


def prepare_create(kind: ServedKind, obj: Object) -> list[Cause]:
    """`prepare` for a new object: what only the server sets is dropped first. Identity is Objects.create's."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        for field in (*_SERVER_SET, "resourceVersion"):
            metadata.pop(field, None)
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            for mark in _MARKS:
                annotations.pop(mark, None)
    reset_status_on_create(kind, obj)
    return prepare(kind, obj, declared=False) or behaviour_of(kind).check_new(obj)


def identified(kind: ServedKind, obj: Object) -> None:
    """Completes a new object that has got its uid."""
    behaviour_of(kind).identified(obj)


def carried(kind: ServedKind, old: Object, new: Object) -> Object:
    """`new`, in place of the stored `old`, with what an update need not say again, as `prepare_update` has it for
    clients. Both are prepared; neither is changed. What is bound is completed where it runs."""
    behaviour = behaviour_of(kind)
    if kind.storage != kind.qualified or behaviour.carry is carries_nothing:
        return new
    made: Object = copy_json(new)
    behaviour.carry(old, made)
    return made


def prepare_update(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    """`prepare` for `new` in place of the stored `old`: keeps identity and, where there is a status subresource, the
    status; counts the generation; refuses changes of what is immutable. metadata.resourceVersion is left alone."""
    changed = _keep_identity(old, new)
    if "status" in kind.subresources:
        _take(new, old, "status")
    if kind.qualified == "namespaces":
        _take(new, old, "spec")  # its finalizers, which have a subresource of their own
    causes = changed + prepare(kind, new, old, declared=False)
    if causes:
        return causes
    causes = _finalizers(old, new) + behaviour_of(kind).check_update(old, new)
    if kind.generation and _counts(kind, old, new):
        new["metadata"]["generation"] = int(old["metadata"].get("generation") or 0) + 1
    return causes


def prepare_status_update(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    """`prepare` for a write of the status subresource: `new` becomes `old` with the status that it brings. Kubernetes'
    own kinds take labels and annotations too."""
    behaviour = behaviour_of(kind)
    causes = _with_status(kind, old, new)
    if causes:
        return causes
    behaviour.carry_status(old, new)
    return behaviour.check_status(old, new)


def prepare_approval(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    """`prepare` for a write of a CertificateSigningRequest's subresource approval: of the status that it brings the
    conditions count."""
    sent = new.get("status")
    status = {**(old.get("status") or {}), "conditions": sent.get("conditions") if isinstance(sent, dict) else None}
    new["status"] = {field: value for field, value in status.items() if value is not None}
    causes = _with_status(kind, old, new)
    if causes:
        return causes
    certificates.settle_approval(old, new)
    return certificates.check_approval(old, new)


def _with_status(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    sent = dict(new)
    metadata = sent.get("metadata") if isinstance(sent.get("metadata"), dict) else {}
    kept = copy_json(old)
    new.clear()
    new.update(kept)
    _take(new, sent, "status")
    for field in ("resourceVersion", "managedFields"):
        _take(new["metadata"], metadata or {}, field)
    taken = () if kind.custom else _STATUS_TAKES[kind.qualified]
    for field in taken:
        _take(new["metadata"], metadata or {}, field)
    if taken:
        keep_marks(old, new)
    return prepare(kind, new, old if kind.custom else None, declared=False)


def prepare_finalize(kind: ServedKind, old: Object, new: Object) -> list[Cause]:
    """`prepare` for a write of a namespace's subresource finalize: spec.finalizers are the client's."""
    _keep_identity(old, new)
    _take(new, old, "status")
    spec = new.get("spec")
    causes = prepare(kind, new, declared=False)
    new["spec"] = spec if isinstance(spec, dict) else {}  # without the default, or the last could not be taken away
    return causes or _finalizers(old, new)


def _take(target: Object, source: Object, field: str) -> None:
    if field in source:
        target[field] = source[field]
    else:
        target.pop(field, None)


def _keep_identity(old: Object, new: Object) -> list[Cause]:
    """Puts back what only the server sets; errors for what a client meant to change of it."""
    metadata = new.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        return []
    sent = {field: metadata[field] for field in IDENTITY if metadata.get(field) not in (None, "")}
    for field in (*_SERVER_SET, "name", "namespace"):
        _take(metadata, old["metadata"], field)
    keep_marks(old, new)
    kept = old["metadata"]
    return [messages.invalid(f"metadata.{f}", v, IMMUTABLE) for f, v in sent.items() if v != kept.get(f)]


def keep_marks(old: Object, new: Object) -> None:
    """Clients that write an object they made themselves do not wipe out where it comes from, nor invent it."""
    metadata = new["metadata"]
    before = old["metadata"].get("annotations") or {}
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        return
    annotations = {k: v for k, v in annotations.items() if k not in _MARKS}
    annotations.update({k: before[k] for k in _MARKS if k in before})
    metadata["annotations"] = annotations


def _finalizers(old: Object, new: Object) -> list[Cause]:
    if not old["metadata"].get("deletionTimestamp"):
        return []
    before = set(old["metadata"].get("finalizers") or ())
    added = [f for f in new["metadata"].get("finalizers") or () if f not in before]
    if not added:
        return []
    listed = ", ".join(messages.printed(f) for f in added)
    text = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [messages.forbidden("metadata.finalizers", text)]


def _counts(kind: ServedKind, old: Object, new: Object) -> bool:
    """Whether the change is one of the spec. A status without a subresource is content like any other."""
    if spec_changed(old, new):
        return True
    if kind.qualified in _LABELS_COUNT:  # an EndpointSlice's say which Service it is of
        return (old["metadata"].get("labels") or {}) != (new["metadata"].get("labels") or {})
    return kind.custom and "status" not in kind.subresources and old.get("status") != new.get("status")

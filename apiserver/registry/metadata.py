"""What holds for the metadata of every object, whatever its kind. Called by strategy.py."""

from __future__ import annotations

from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.served import ServedKind
from apiserver.schema import messages
from apiserver.schema.last_applied import ANNOTATIONS_LIMIT

Object = dict[str, Any]

_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_SERVED_APART = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
"""Groups whose finalizers kube-apiserver takes as it takes those of custom resources: a bare name is no error."""


def normalise(metadata: Object) -> None:
    """Nulls are absent, as Go decodes them; empty maps and lists are left out, as Go prints them."""
    for key in [k for k, v in metadata.items() if v is None or v in ({}, [], "")]:
        del metadata[key]


def check(kind: ServedKind, metadata: Object) -> list[Cause]:
    """All errors of metadata whose fields have the right types."""
    found = _generate_name(kind, metadata) + _name(kind, metadata) + _namespace(kind, metadata)
    found += check_labels(metadata.get("labels") or {}) + check_annotations(metadata.get("annotations") or {})
    for index, finalizer in enumerate(metadata.get("finalizers") or ()):
        bare = kind.custom or kind.group in _SERVED_APART
        found += check_finalizer(f"metadata.finalizers[{index}]", finalizer, bare=bare)
    return found + _owners(metadata.get("ownerReferences") or [])


def _name(kind: ServedKind, metadata: Object) -> list[Cause]:
    name = metadata.get("name") or ""
    if not name:
        return [messages.required("metadata.name", "name or generateName is required")]
    return [messages.invalid("metadata.name", name, m) for m in kind.names(name)]


def _generate_name(kind: ServedKind, metadata: Object) -> list[Cause]:
    """Judged as a name that goes on where it ends in a hyphen."""
    base = metadata.get("generateName") or ""
    if not base:
        return []
    whole = f"{base[:-1]}a" if base.endswith("-") else base
    return [messages.invalid("metadata.generateName", base, m) for m in kind.names(whole)]


def _namespace(kind: ServedKind, metadata: Object) -> list[Cause]:
    namespace = metadata.get("namespace") or ""
    if not kind.namespaced:
        return [messages.forbidden("metadata.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [messages.required("metadata.namespace")]
    return [messages.invalid("metadata.namespace", namespace, m) for m in names.dns_label(namespace)]


def check_labels(them: dict[str, str]) -> list[Cause]:
    found = []
    for key, value in them.items():
        found += [messages.invalid("metadata.labels", key, m) for m in names.qualified_name(key)]
        found += [messages.invalid("metadata.labels", value, m) for m in names.label_value(value)]
    return found


def check_annotations(them: dict[str, str]) -> list[Cause]:
    found, size = [], 0
    for key, value in them.items():
        found += [messages.invalid("metadata.annotations", key, m) for m in names.qualified_name(key.lower())]
        size += len(key.encode()) + len(value.encode())
    if size > ANNOTATIONS_LIMIT:
        found.append(messages.too_long("metadata.annotations", ANNOTATIONS_LIMIT))
    return found


def warnings(kind: ServedKind, old: Object, new: Object) -> list[str]:
    """About the metadata of a custom resource: finalizers that it did not have before and that are bare names."""
    added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()) if kind.custom else ()
    found = []
    for name in sorted(filter(_is_bare, added)):
        how = " including a path (/)" if "." in name else ""
        why = "to avoid accidental conflicts with other finalizer writers"
        found.append(f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{how} {why}')
    return found


def _is_bare(finalizer: str) -> bool:
    return "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS


def check_finalizer(path: str, finalizer: str, *, bare: bool = False) -> list[Cause]:
    """`bare`: it may be a name without a domain that is none of Kubernetes' own."""
    found = [messages.invalid(path, finalizer, m) for m in names.qualified_name(finalizer)]
    if not found and _is_bare(finalizer) and not bare:
        text = "name is neither a standard finalizer name nor is it fully qualified"
        found.append(messages.invalid(path, finalizer, text))
    return found


def _owners(owners: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    controllers = []
    for owner in owners:
        path = "metadata.ownerReferences"  # without an index, as kube-apiserver writes it
        if not owner.get("apiVersion"):
            found.append(messages.invalid(f"{path}.apiVersion", "", "version must not be empty"))
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                found.append(messages.invalid(f"{path}.{field}", "", "must not be empty"))
        if owner.get("controller"):
            controllers.append(owner.get("name", ""))
    if len(controllers) > 1:
        first, second = controllers[:2]
        text = (
            f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'
        )
        found.append(messages.invalid("metadata.ownerReferences", owners, text))
    return found

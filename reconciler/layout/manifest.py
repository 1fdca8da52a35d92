"""Manifests: what a file declares, with the place each came from. Called by the loader, secrets and fleet.

Checks only what makes an object addressable (apiVersion, kind, name, types of metadata); what its kind demands is the
registry's to check. `index` counts a file's objects from 0, lists expanded, and with the file's blob gives lines later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apiserver.model import marks
from apiserver.model.kinds import GroupVersionKind, split_api_version
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.faults import type_name
from reconciler.layout.yamldoc import Document, parse

_SERVERS = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_OURS = (marks.SOURCE_PATH, marks.SOURCE_COMMIT, marks.ORIGIN, marks.CLUSTER)
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(slots=True)
class Manifest:
    """One object as git declares it.

    `namespace` is as written, "" when it is not. `value` is the object: *.kcp.dev groups spelled *.kcp.io, without
    status and without the metadata that only servers set.
    """

    path: str
    index: int
    line: int
    gvk: GroupVersionKind
    namespace: str
    name: str
    value: dict[str, Any]

    def error(self, message: str, hint: str = "") -> LayoutError:
        """A fault of this object."""
        return LayoutError(self.path, self.line, 0, message, hint)


@dataclass(slots=True)
class Manifests:
    """What a file holds: its objects, its faults (objects and faults may both be there) and what was left out."""

    objects: list[Manifest] = field(default_factory=list)
    errors: list[LayoutError] = field(default_factory=list)
    notices: list[LayoutError] = field(default_factory=list)


def read(data: bytes, path: str) -> Manifests:
    """All of a file. Never raises: every fault is in `errors`."""
    out = Manifests()
    if data.startswith(LFS_POINTER):
        hint = "commit the file itself: git lfs untrack, then git add --renormalize"
        out.errors.append(LayoutError(path, 0, 0, "is a Git LFS pointer, not a manifest", hint))
        return out
    try:
        documents = parse(data, path)
    except BadFile as bad:
        out.errors += bad.errors
        return out
    for index, document in enumerate(documents):
        try:
            out.objects.append(of_document(document, path, index, out.notices))
        except BadFile as bad:
            out.errors += bad.errors
    return out


def of_document(document: Document, path: str, index: int, notices: list[LayoutError]) -> Manifest:
    """The manifest that a document is; the document's value becomes the manifest's. Raises BadFile."""
    value, faults = document.value, []
    api_version, kind = value.get("apiVersion"), value.get("kind")
    group, version = "", ""
    if not isinstance(api_version, str) or not api_version:
        faults.append(_wrong("apiVersion", api_version, "text such as v1 or apps/v1"))
    else:
        try:
            group, version = split_api_version(api_version)
        except ValueError:
            faults.append((f"apiVersion {api_version!r} is not <group>/<version>", ""))
    if not isinstance(kind, str) or not kind:
        faults.append(_wrong("kind", kind, "text such as Deployment"))
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        faults.append(_wrong("metadata", metadata, "a mapping with a name"))
        metadata = {}
    faults += _metadata_faults(metadata)
    if faults:
        raise BadFile([LayoutError(path, document.line, 0, message, hint) for message, hint in faults])
    if group.endswith(".kcp.dev"):
        group = group.removesuffix("dev") + "io"
        value["apiVersion"] = f"{group}/{version}"
    value.pop("status", None)
    namespace, name = metadata.get("namespace") or "", metadata["name"]
    dropped = _drop(metadata)
    if dropped:
        message = f"{kind} {name}: {', '.join(dropped)} left out: only the server sets it"
        notices.append(LayoutError(path, document.line, 0, message))
    return Manifest(path, index, document.line, GroupVersionKind(group, version, str(kind)), namespace, name, value)


def _metadata_faults(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    faults: list[tuple[str, str]] = []
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if "generateName" in metadata and not name:
        faults.append(("metadata.generateName cannot be used: git has to say which object it means", "give it a name"))
    elif not isinstance(name, str) or not name:
        faults.append(_wrong("metadata.name", name, "text"))
    if namespace is not None and not isinstance(namespace, str):
        faults.append(_wrong("metadata.namespace", namespace, "text"))
    for part in ("labels", "annotations"):
        pairs = metadata.get(part)
        if pairs is None:
            metadata.pop(part, None)
        elif not isinstance(pairs, dict):
            faults.append(_wrong(f"metadata.{part}", pairs, "a mapping"))
        else:
            faults += [
                _wrong(f"metadata.{part}[{key}]", text, "text")
                for key, text in pairs.items()
                if not isinstance(text, str)
            ]
    for part in ("finalizers", "ownerReferences"):
        if part in metadata and not isinstance(metadata[part], list | None):
            faults.append(_wrong(f"metadata.{part}", metadata[part], "a list"))
    return faults


def _drop(metadata: dict[str, Any]) -> list[str]:
    dropped = [f"metadata.{part}" for part in _SERVERS if metadata.pop(part, None) is not None]
    annotations = metadata.get("annotations")
    if annotations:
        for mark in _OURS:
            if annotations.pop(mark, None) is not None:
                dropped.append(f"metadata.annotations[{mark}]")
        if not annotations:
            del metadata["annotations"]
    return dropped


def _wrong(what: str, found: object, wanted: str) -> tuple[str, str]:
    if found is None or found == "":
        return f"{what} is missing", f"it is {wanted}" if wanted != "text" else ""
    hint = "write it in quotes" if wanted == "text" and isinstance(found, bool | int | float) else ""
    return f"{what} must be {wanted}, not {type_name(found)}", hint

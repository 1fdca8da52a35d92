"""workspace.yaml: the manifest that makes a directory a workspace, and belongs to the parent. Called by the loader."""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.model import paths, reserved
from apiserver.model.origins import Origin
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.manifest import LFS_POINTER, Manifest, of_document
from reconciler.layout.pin import Pin, fault
from reconciler.layout.schemas import check
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.sourceref import fault as source_fault
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import YamlDocument, line_of, parse
from reconciler.repository.objects import Repository

API_VERSION, KIND = "tenancy.kcp.io/v1alpha1", "Workspace"
_UNNAMED = "unnamed"


def read_workspace(repo: Repository, workspace: WorkspaceDir) -> Manifest:
    """The Workspace object that a directory declares, as its parent gets it. Raises BadFile with every fault.

    The root, and a workspace whose file is gone, have one with a name and nothing else.
    """
    name, path = paths.base(workspace.path), workspace.manifest_path
    if workspace.manifest is None:
        return named(Declaration(_object({}, 0), None), path, name)
    return named(declaration(repo.blob(workspace.manifest.id), path), path, name)


class Declaration(NamedTuple):
    """What a workspace.yaml says, whichever directory it stands in. `manifest` has no path, and a name that means
    nothing; `name` is the one that the file gives, if it does; `uid` that of the Workspace which the directory is, ""
    where the file leaves that open; `pin` what it says under spec.serve, `source` what under spec.source."""

    manifest: Manifest
    name: str | None
    uid: str = ""
    pin: Pin | None = None
    source: SourceRef | None = None


def declaration(data: bytes, path: str) -> Declaration:
    """Most workspaces of a fleet say the same, so the loader asks once for each content. Raises BadFile."""
    if data.startswith(LFS_POINTER):
        raise BadFile([LayoutError(path, 0, 0, "is a Git LFS pointer, not a manifest", "commit the file itself")])
    faults = _faults(data, path)
    if faults:
        raise BadFile(faults)
    documents = parse(data, path)
    if not documents:
        return Declaration(_object({}, 1), None)
    value = documents[0].value
    metadata = value.get("metadata") or {}
    return Declaration(
        _object(value, documents[0].line),
        metadata.get("name"),
        metadata.get("uid") or "",
        Pin.of(value),
        SourceRef.of(value),
    )


def named(said: Declaration, path: str, name: str) -> Manifest:
    """The Workspace that the file at `path` declares, in a directory called `name`. Raises BadFile."""
    found = said.manifest
    if said.name is not None and said.name != name:
        message = f"metadata.name is {said.name!r}, but the directory's name is {name!r}"
        raise BadFile([LayoutError(path, found.line, 0, message, "leave it out, or rename one of the two")])
    value = {**found.value, "metadata": {**found.value["metadata"], "name": name}}
    return Manifest(Origin(path), 0, found.line, found.gvk, found.namespace, name, value)


def _faults(data: bytes, path: str) -> tuple[LayoutError, ...]:
    documents = parse(data, path, positions=True)
    if not documents:
        return ()
    more = [LayoutError(path, d.line, 0, "a second object", "it holds one Workspace") for d in documents[1:]]
    first = documents[0]
    first.value.pop("status", None)
    found = check("workspace", first, path)
    return (*(found or (*_reserved(first, path), *_endless(first, path), *_nowhere(first, path))), *more)


def _reserved(document: YamlDocument, path: str) -> list[LayoutError]:
    """What is the system's to say, but for what it says for its LogicalCluster."""
    metadata = document.value.get("metadata") or {}
    marks = [m for m in reserved.said(metadata) if m.key not in reserved.OF_WORKSPACES]
    hint = "remove it: the server sets it"
    found = [LayoutError(path, line_of(document, mark.field), 0, mark.said, hint) for mark in marks]
    why = reserved.wrong(reserved.settable(metadata))
    if why:
        field = f"metadata.annotations[{why.partition(' ')[0]}]"
        found.append(LayoutError(path, line_of(document, field), 0, why, "correct it, or leave it out"))
    return sorted(found, key=lambda error: error.line)


def _endless(document: YamlDocument, path: str) -> list[LayoutError]:
    """A pin whose end is no time."""
    why, field = fault(document.value), "spec.serve.until"
    hint = "write a time like 2026-12-31T18:00:00Z, or leave it out"
    return [LayoutError(path, line_of(document, field), 0, f"{field} {why}", hint)] if why else []


def _nowhere(document: YamlDocument, path: str) -> list[LayoutError]:
    """A source that cannot be one."""
    why = source_fault(document.value)
    if why is None:
        return []
    return [LayoutError(path, line_of(document, why.field), 0, f"{why.field} {why.text}", why.hint)]


def _object(value: dict[str, Any], line: int) -> Manifest:
    whole = {
        **value,
        "apiVersion": value.get("apiVersion", API_VERSION),
        "kind": KIND,
        "metadata": {**(value.get("metadata") or {}), "name": _UNNAMED},
    }
    return of_document(YamlDocument(whole, line), "", 0, [])

"""workspace.yaml: the manifest that makes a directory a workspace, and belongs to the parent. Called by the loader."""

from __future__ import annotations

from functools import lru_cache

from apiserver.model import paths
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.manifest import LFS_POINTER, Manifest, of_document
from reconciler.layout.schemas import check
from reconciler.layout.tree import WorkspaceDir
from reconciler.layout.yamldoc import Document, parse
from reconciler.repository.objects import Repository

API_VERSION, KIND = "tenancy.kcp.io/v1alpha1", "Workspace"


def read_workspace(repo: Repository, workspace: WorkspaceDir) -> Manifest:
    """The Workspace object that a directory declares, as its parent gets it. Raises BadFile with every fault.

    The root, and a workspace whose file is gone, have one with a name and nothing else.
    """
    name, path = paths.base(workspace.path), workspace.manifest_path
    if workspace.manifest is None:
        return _object({}, name, path, 0)
    return parse_workspace(repo.blob(workspace.manifest.id), path, name)


def parse_workspace(data: bytes, path: str, name: str) -> Manifest:
    """`name` is the directory's. Raises BadFile."""
    if data.startswith(LFS_POINTER):
        raise BadFile([LayoutError(path, 0, 0, "is a Git LFS pointer, not a manifest", "commit the file itself")])
    # Most workspaces of a fleet say the same, so what was found good once is not looked at again.
    if not _is_good(data, path.endswith(".json")):
        raise BadFile(_faults(data, path))
    documents = parse(data, path)
    if not documents:
        return _object({}, name, path, 1)
    document = documents[0]
    given = (document.value.get("metadata") or {}).get("name")
    if given is not None and given != name:
        message = f"metadata.name is {given!r}, but the directory's name is {name!r}"
        raise BadFile([LayoutError(path, document.line, 0, message, "leave it out, or rename one of the two")])
    return _object(document.value, name, path, document.line)


@lru_cache(maxsize=4096)
def _is_good(data: bytes, is_json: bool) -> bool:
    try:
        return not _faults(data, "workspace.json" if is_json else "workspace.yaml")
    except BadFile:
        return False


def _faults(data: bytes, path: str) -> tuple[LayoutError, ...]:
    documents = parse(data, path, positions=True)
    if not documents:
        return ()
    more = [LayoutError(path, d.line, 0, "a second object", "it holds one Workspace") for d in documents[1:]]
    first = documents[0]
    first.value.pop("status", None)
    return (*check("workspace", first, path), *more)


def _object(value: dict[str, object], name: str, path: str, line: int) -> Manifest:
    metadata = value.get("metadata")
    whole = {
        **value,
        "apiVersion": value.get("apiVersion", API_VERSION),
        "kind": KIND,
        "metadata": {**(metadata if isinstance(metadata, dict) else {}), "name": name},
    }
    return of_document(Document(whole, line), path, 0, [])

"""Directories whose manifests a program makes, as pieces of a source: what is rendered of what, and what comes of it.

Called by plainfiles, which has such a directory as one of its files, and by feeds, which asks what else a rendering is
made of. How it is rendered is given (rendering/rendering.Renders); what the program sees says layout/inputs. Never is a
file below such a directory read by itself, and nothing that could not be rendered counts as output: it is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from apiserver.model.origins import Origin
from apiserver.model.remembered import Remembered, footprint
from reconciler.layout import manifest
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.inputs import InputFinder, Inputs, files_of, is_in
from reconciler.layout.level import RENDERED_BY
from reconciler.layout.manifest import SEALED, Manifest
from reconciler.layout.source import Piece
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import roots
from reconciler.loading import renderedsecrets, unsealing
from reconciler.rendering.rendering import Renders
from reconciler.rendering.request import RenderRequest, Tool

MOST = 32
"""Directories of one workspace that are rendered."""
_CHART = RENDERED_BY[-1]
_KEPT, _KEPT_PATHS, _EACH = 8 * 1024 * 1024, 1024 * 1024, 512
"""Bytes in memory of what was made, of where workspaces have something rendered, and of one beside what it says."""
_KEPT_FOUND = 2_000
"""Rendered directories of which it is remembered what they are made of."""
_BETWEEN = re.compile(rb"^---(?=[ \t\r\n]|$)", re.MULTILINE)
_LATE = "what its workspace has rendered takes too long together"
_NO_SOURCE = "put into that directory what it is made of, or a base into one that spec.rendering.shared names"
_NOT_THERE = "put into that directory what it is made of, or a base within spec.source.path, in no other workspace"


class RenderedDirectory(NamedTuple):
    """One of a workspace. `path`: the file that makes it one; `refused`: why it is not rendered, whoever is asked;
    `hint`: what to do where a kustomization names what is not to be seen, "" where none does."""

    path: str
    request: RenderRequest
    inputs: Inputs
    refused: LayoutError | None = None
    hint: str = ""

    @property
    def says(self) -> str:
        """Where two say the same, the same comes of both."""
        return f"{self.request.digest} {self.refused or ''}"


class Renderings:
    """Of one repository. Safe from several threads."""

    def __init__(self, renders: Renders, most: int = _KEPT) -> None:
        """`most`: bytes in memory of what was made."""
        self.renders = renders
        self.late: set[str] = set()
        """Digests of what is not rendered for now, since the others of its workspace took too long (expected)."""
        self._finder = InputFinder()
        self._known: Remembered[str, tuple[str, ...]] = Remembered(_KEPT_PATHS)
        self._found: Remembered[tuple[object, ...], tuple[RenderedDirectory, ...]] = Remembered(_KEPT_FOUND)
        self._made: Remembered[tuple[str, str, str], Piece] = Remembered(most)

    def of(self, tree: WorkspaceTree, workspace: WorkspaceDir) -> tuple[RenderedDirectory, ...]:
        """All of a workspace."""
        paths = self._paths(tree, workspace)
        if not paths:
            return ()
        # It is asked for some times while a workspace is judged.
        key = tree.tree_id, frozenset(tree.claims.items()), workspace.directory, tree.border(workspace)
        known = self._found.get(key)
        if known is None:
            known = tuple(self._one(tree, workspace, path, number) for number, path in enumerate(paths))
            self._found.put(key, known, len(known))
        return known

    def _paths(self, tree: WorkspaceTree, workspace: WorkspaceDir) -> tuple[str, ...]:
        """Of a commit's tree they are asked for again and again, and to find them all own directories are looked at."""
        if workspace.files is not None or tree.claims:
            return tuple(sorted(path for path, _ in tree.rendered(workspace)))
        key = _key(tree, workspace)
        known = self._known.get(key)
        if known is None:
            known = tuple(sorted(path for path, _ in tree.rendered(workspace)))
            self._known.put(key, known, _EACH + sum(map(len, known)))
        return known

    def note_none(self, tree: WorkspaceTree, workspace: WorkspaceDir) -> None:
        """That a workspace has none, known by who compared it with one that has none: a commit costs what it changes,
        and not all directories of the workspace."""
        if workspace.files is None and not tree.claims:
            key = _key(tree, workspace)
            self._known.put(key, (), _EACH + len(key))

    def _one(self, tree: WorkspaceTree, workspace: WorkspaceDir, path: str, number: int) -> RenderedDirectory:
        """`number`: which of the workspace's it is."""
        directory, _, name = path.rpartition("/")
        tool = Tool.HELM if name == _CHART else Tool.KUSTOMIZE
        inputs = self._finder.of(tree, workspace, path)
        request = RenderRequest(tool, directory, tree.repo, partial(files_of, tree, inputs), inputs.digest)
        return RenderedDirectory(path, request, inputs, _refused(tree, path, inputs, number), _outside(tree, inputs))

    def piece(self, found: RenderedDirectory) -> Piece:
        """What comes of it. Waits."""
        if found.refused is not None:
            return Piece(found.path, (), (found.refused,), generator=found.request.tool)
        key = found.path, found.request.digest, self.renders.fingerprint
        known = self._made.get(key)
        if known is not None:
            return known
        if found.request.digest in self.late:
            hint = "have it render less, or give some of it another workspace; it is tried again"
            problem = LayoutError(found.path, 0, 0, f"cannot be rendered: {_LATE}", hint)
            return Piece(found.path, (), (problem,), found.request.tool, lasting=False)
        made = self.renders.rendered(found.request)
        if made.fault or not made.output.strip():
            fault = made.fault or "nothing comes of it; nothing is deleted for that"
            hint = found.hint or made.hint
            problem = LayoutError(found.path, 0, 0, f"cannot be rendered: {fault}", hint)
            return Piece(found.path, (), (problem,), found.request.tool, made.lasting)
        piece = read(made.output, found)
        size = sum(_EACH + footprint(each.value) for each in piece.manifests)
        self._made.put(key, piece, _EACH + size + sum(len(str(each)) for each in piece.problems))
        return piece


def _key(tree: WorkspaceTree, workspace: WorkspaceDir) -> str:
    rules = " ".join(each.id for each in tree.stack(workspace.directory.rpartition("/")[0]))
    return f"{workspace.tree} {workspace.directory} {rules}"


def _refused(tree: WorkspaceTree, path: str, inputs: Inputs, number: int) -> LayoutError | None:
    directory = path.rpartition("/")[0]
    if number >= MOST:
        hint = "give some of them a workspace of their own, or render several with one kustomization"
        return LayoutError(path, 0, 0, f"a workspace has at most {MOST} directories that are rendered", hint)
    below = next((each for each, entry in tree.all_below(directory) if entry.kind == "tree"), None)
    if below is not None:
        inside = tree.at(below)
        named = f"the workspace {inside.path}" if inside is not None and tree.is_fleets else "a workspace"
        text = f"renders {directory}, and {named} stands in {below}, which is below that"
        return LayoutError(path, 0, 0, text, "move one of the two directories out of the other")
    if inputs.fault:
        return LayoutError(path, 0, 0, f"is not rendered: {inputs.fault}", "have it name less")
    return None


def _outside(tree: WorkspaceTree, inputs: Inputs) -> str:
    if not inputs.outside:
        return ""
    named = ", ".join(inputs.outside[:3]) + (" and more" if len(inputs.outside) > 3 else "")
    if tree.folder and tree.is_fleets and not any(is_in(each, tree.folder) for each in inputs.outside):
        return f"it names {named}, which is outside of the fleet's folder {tree.folder}: {_NO_SOURCE}"
    return f"it names {named}, which is not this workspace's: {_NO_SOURCE if tree.is_fleets else _NOT_THERE}"


# --- what a program wrote


def read(output: bytes, of: RenderedDirectory) -> Piece:
    """The manifests of an output, each read as a file of its own: what SOPS encrypted is one Secret there."""
    path, tool = of.path, of.request.tool
    origin, manifests, problems = Origin(path, tool), list[Manifest](), list[LayoutError]()
    for number, document in enumerate(_documents(output)):
        if SEALED in document:
            blobs = (of.request.repo.blob(entry.id) for _, entry in of.request.files())
            document = renderedsecrets.as_written(document, path, blobs)
        found = manifest.read(document, path)
        errors = [*found.errors, *_damaged(document, path, found.objects)]
        problems += [_told(error, document, path) for error in errors]
        if not errors:
            manifests += [replace(each, origin=origin, index=number, line=0) for each in found.objects]
    if not manifests and not problems:
        text = "no object comes of it; nothing is deleted for that"
        hint = "have it make one, or remove the directory"
        problems.append(LayoutError(path, 0, 0, text, hint))
    return Piece(path, tuple(manifests), tuple(problems), tool)


def _documents(output: bytes) -> Iterator[bytes]:
    """Between lines of ---, which cannot stand within one."""
    begins = [0, *(found.end() for found in _BETWEEN.finditer(output))]
    ends = [*(found.start() for found in _BETWEEN.finditer(output)), len(output)]
    for begin, end in zip(begins, ends, strict=True):
        if output[begin:end].strip():
            yield output[begin:end]


def _damaged(document: bytes, path: str, objects: Sequence[Manifest]) -> tuple[LayoutError, ...]:
    if all(each.sealed is None for each in objects):
        return ()
    if renderedsecrets.counts_all(document, path):
        return (LayoutError(path, 0, 0, renderedsecrets.NOT_ONLY, renderedsecrets.REMEDY),)
    return unsealing.faults(document, path)


def _told(error: LayoutError, document: bytes, path: str) -> LayoutError:
    """With the object that it is about, since nobody sees the lines."""
    try:
        value = next((root.value for root in roots(document, path)), {})
    except BadFile:
        value = {}
    kind, metadata = value.get("kind"), value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    about = " ".join(each for each in (kind, name) if isinstance(each, str) and each)
    text = f"what comes of it is no manifest: {about}: " if about else "what comes of it is no manifest: "
    return LayoutError(path, 0, 0, f"{text}{error.message}", error.hint)

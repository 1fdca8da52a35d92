"""The content of a workspace as it is judged: its kinds, its objects, and what is wrong with them.

Filled in by phases.kinds and phases.declaring. Every problem is found, not the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from apiserver.model.keys import Key
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.kinds import KindTable
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.consequences import held_there, remedy
from reconciler.loading.gather import Gathered
from reconciler.loading.identities import ExportIdentity
from reconciler.loading.render import DeclaredObject, Renderer
from reconciler.plan import apis

Object = dict[str, Any]

_BY_LAYOUT = {(kind.group, kind.kind): kind.by_directory for kind in ENTRIES.values() if kind.by_directory}


def _nobody(_group: str, _kind: str) -> str:
    return ""


@dataclass(slots=True)
class WorkspaceContent:
    """`was`: the kinds that the workspace served so far, `kinds`: those that it is to serve. `rest`: manifests that are
    declared when these are known.

    `declared` by key; `removed`: what git declared and no longer does; `old`: the objects as git said before;
    `faulty`: (group, kind) of manifests with problems; `identities`: of its APIExports, by name; `apis` only when kinds
    were decided anew. `lacks`: by group and kind, the workspace that is held and because of which that is not served.
    """

    was: KindTable
    kinds: KindTable
    rest: list[Manifest] = field(default_factory=list)
    declared: dict[Key, DeclaredObject] = field(default_factory=dict)
    removed: dict[Key, Manifest] = field(default_factory=dict)
    old: dict[Key, Object] = field(default_factory=dict)
    problems: list[LayoutError] = field(default_factory=list)
    faulty: set[tuple[str, str]] = field(default_factory=set)
    identities: dict[str, ExportIdentity] = field(default_factory=dict)
    apis: apis.Apis | None = None
    lacks: Callable[[str, str], str] = _nobody

    def declare(
        self,
        manifests: Iterable[Manifest],
        kinds: KindTable,
        cluster: str,
        gathered: Gathered,
        strict: Collection[tuple[str, str]] = (),
    ) -> None:
        """Renders manifests as objects of these kinds. `strict`: (group, kind) of what nothing excuses."""

        def accepted(manifest: Manifest) -> Object | None:
            if gathered.accepted is None or (manifest.gvk.group, manifest.gvk.kind) in strict:
                return None
            return gathered.accepted(manifest)

        renderer = Renderer(kinds, cluster, gathered.line, accepted if strict else gathered.accepted)
        for manifest in manifests:
            refused = _refused(manifest)
            if refused is not None:
                self.problems.append(refused)
                continue
            declared, problems = renderer.render(manifest)
            self.problems.extend(self._lacking(manifest, kinds) or problems if problems else ())
            if problems:
                self.faulty.add((manifest.gvk.group, manifest.gvk.kind))
            if declared is None:
                continue
            other = self.declared.get(declared.key)
            if other is not None and other.manifest.origin.path:
                self.problems.extend(_twice(declared, other.manifest))
                continue
            self.declared[declared.key] = declared

    def _lacking(self, manifest: Manifest, kinds: KindTable) -> list[LayoutError]:
        """Instead of what is wrong with a manifest, where its kind is not there for a mistake of another workspace."""
        gvk = manifest.gvk
        held = self.lacks(gvk.group, gvk.kind) if kinds.by_kind(*gvk) is None else ""
        if not held:
            return []
        text = f'no kind "{gvk.kind}" in apiVersion "{gvk.api_version}"{held_there(held)}'
        return [replace(manifest.error(text, remedy(held)), waits_for=held)]


def _refused(manifest: Manifest) -> LayoutError | None:
    """What the layout declares by directories is no manifest."""
    kind = (manifest.gvk.group, manifest.gvk.kind)
    if not manifest.origin.path or kind not in _BY_LAYOUT:
        return None
    text = f"{manifest.gvk.kind} {manifest.name} cannot be declared here"
    return manifest.error(text, _BY_LAYOUT[kind])


def _twice(declared: DeclaredObject, other: Manifest) -> list[LayoutError]:
    """An error of both files."""
    here, what = declared.manifest, f"{declared.kind.kind} {declared.key.name} is declared twice: also in "
    return [
        here.error(f"{what}{other.place}"),
        other.error(f"{what}{here.place}"),
    ]

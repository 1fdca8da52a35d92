"""Whether what a file, or a rendered directory, holds can be served by a workspace, and what it needs there.

Called by planning, for one workspace at a time. What only the fleet's own loader can find out, it finds out at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from apiserver.registry.builtins.served import exported_builtins, target_builtins, workspace_builtins
from reconciler.commands.adopting.deliverers import elsewhere, installs, named_directories, names_directories, said_to
from reconciler.commands.adopting.kustomized import Kustomizations
from reconciler.commands.adopting.lookedat import LookedAt
from reconciler.commands.adopting.readings import Readings, is_manifests
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import SEALED, Manifest, read
from reconciler.layout.yamldoc import parse
from reconciler.plan import system

Identity = tuple[str, str, str, str]
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class Why(NamedTuple):
    """Why something is left out; `missed`: see LeftOut."""

    reason: str
    missed: bool = True


class WorkspaceNeeds(NamedTuple):
    """Of objects. `declared`: Namespaces that are among them, `named`: those that they stand in; `exports` of
    root:compute; `bound`: APIBindings that are among them."""

    exports: frozenset[str] = frozenset()
    named: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()

    def __or__(self, other: WorkspaceNeeds) -> WorkspaceNeeds:
        return WorkspaceNeeds(*(one | two for one, two in zip(self, other, strict=True)))


class Inquiry:
    """What is passed as `kinds` is what definitions of the workspace make: group, version and kind of each."""

    def __init__(self, looked: LookedAt, readings: Readings, kustomizations: Kustomizations) -> None:
        self._looked, self._readings, self._kustomizations = looked, readings, kustomizations

    def plain(self, path: str, kinds: frozenset[tuple[str, str, str]]) -> Why | WorkspaceNeeds:
        """Of a file that is no part of a rendered directory."""
        data = self._looked.files[path]
        if SEALED in data:
            return Why("is encrypted by SOPS: give Treeplane the key, then copy it (docs/secrets.md)")
        found = self._readings.of(path)
        if found.errors:
            said = found.errors[0]
            if not _is_manifest(data):
                return Why(said.message, missed=False)
            return Why(f"line {said.line}: {said.message}" if said.line else said.message)
        if not found.objects:
            return Why("holds no object", False)
        return self._fault(found.objects, kinds) or needs_of(found.objects)

    def unnamed(self, path: str) -> Why:
        """Of a file that is not on clusters, since nothing names its directory."""
        objects = self._readings.of(path).objects if is_manifests(path) else []
        if objects and all(map(said_to, objects)):
            return self._replaced(objects)
        return Why("no Flux Kustomization or Argo CD Application names its directory", missed=False)

    def kustomized(self, directory: str, kinds: frozenset[tuple[str, str, str]]) -> Why | WorkspaceNeeds:
        """Of a directory that kustomize renders."""
        reached = self._kustomizations.reached(directory)
        if reached.fault:
            return Why(reached.fault)
        objects: list[Manifest] = []
        needs = WorkspaceNeeds()
        for path, namespace in sorted(reached.files):
            found = read(self._looked.files[path], path)
            if SEALED in self._looked.files[path]:
                return Why(f"{path} is encrypted by SOPS: give Treeplane the key, then copy it (docs/secrets.md)")
            if found.errors:
                return Why(str(found.errors[0]))
            objects += found.objects
            needs |= needs_of(found.objects, namespace)
        return self._fault(objects, kinds) or needs

    def chart(self, directory: str) -> Why | WorkspaceNeeds:
        """Of a chart: what its templates make, helm alone can tell."""
        path = f"{directory}/Chart.yaml" if directory else "Chart.yaml"
        try:
            documents = parse(self._looked.files[path], path)
        except BadFile as bad:
            return Why(str(bad.errors[0]))
        charts = f"{directory}/charts" if directory else "charts"
        if documents and documents[0].value.get("dependencies") and not self._looked.below(charts):
            return Why("dependencies of its chart are not committed: helm dependency build, and git add charts")
        return WorkspaceNeeds(exports=frozenset({system.EXPORT}))

    def definitions(self, paths: Iterable[str]) -> frozenset[tuple[str, str, str]]:
        """The kinds that definitions in these files make."""
        return frozenset(
            kind
            for path in paths
            for manifest in self._readings.of(path).objects
            if (manifest.gvk.group, manifest.gvk.kind) == _DEFINITION
            for kind in _defined(manifest.value.get("spec"))
        )

    def _fault(self, objects: list[Manifest], kinds: frozenset[tuple[str, str, str]]) -> Why | None:
        if objects and all(said_to(each) or installs(each) for each in objects):
            return self._replaced(objects)
        for each in objects:
            if said_to(each):
                text = f"{each.gvk.kind} {each.name} is told to {said_to(each)}, which the fleet replaces"
                return Why(f"{text}: take it out, or give it a file of its own")
            if not _is_served(each, kinds):
                text = f"no kind {each.gvk.kind} of {each.gvk.api_version}: its definition is not in this workspace"
                return Why(f"{text} ({each.name})")
        return None

    def _replaced(self, objects: list[Manifest]) -> Why:
        """Of objects for programs in whose place the fleet is. What they bring to clusters from elsewhere is missed."""
        told, itself = ({which(each) for each in objects} - {""} for which in (said_to, installs))
        said = f"is told to {' and '.join(sorted(told))}" if told else f"is {' and '.join(sorted(itself))} itself"
        said += ", which the fleet replaces"
        if any(each.gvk.kind == "HelmRelease" for each in objects if said_to(each)):
            return Why(f"{said}; commit the chart of a HelmRelease, with its values (docs/rendering.md)")
        for each in objects:
            if names_directories(each) and not any(named_directories(each, self._looked.directories)):
                return Why(f"{said}; {each.gvk.kind} {each.name} names no directory that is here")
        namespaces = sorted({elsewhere(each) for each in objects} - {"", "default"})
        if namespaces:
            brief = ", ".join(namespaces[:3])[:100]
            said += f"; it puts objects that name no namespace into {brief}: say so in their manifests"
        return Why(said, missed=False)


def identities(objects: Iterable[Manifest]) -> Iterator[Identity]:
    """What no two objects of a workspace share."""
    yield from ((each.gvk.group, each.gvk.kind, each.namespace or "default", each.name) for each in objects)


def needs_of(objects: list[Manifest], into: str = "") -> WorkspaceNeeds:
    """`into`: the namespace that a kustomization puts all of them in, a Namespace among them too."""
    exports = {system.export_of(each.gvk.group, each.gvk.kind) for each in objects} - {""}
    named = {each for each in (into or each.namespace for each in objects) if _is_namespace(each)} - {"default"}
    declared = {into or each.name for each in objects if (each.gvk.group, each.gvk.kind) == ("", "Namespace")}
    bound = {each.name for each in objects if each.gvk.kind == "APIBinding"}
    return WorkspaceNeeds(frozenset(exports), frozenset(named), frozenset(declared), frozenset(bound))


def _is_served(manifest: Manifest, kinds: frozenset[tuple[str, str, str]]) -> bool:
    gvk = manifest.gvk
    if tuple(gvk) in kinds or workspace_builtins().by_kind(*gvk) is not None:
        return True
    offered = system.export_of(gvk.group, gvk.kind)
    return bool(offered) and any(table().by_kind(*gvk) is not None for table in (target_builtins, exported_builtins))


def _defined(spec: Any) -> Iterator[tuple[str, str, str]]:
    """What is no text is no kind that anything could be of."""
    names = spec.get("names") if isinstance(spec, dict) else None
    versions = spec.get("versions") if isinstance(spec, dict) else None
    if isinstance(names, dict) and isinstance(versions, list):
        for version in versions:
            said = version.get("name") if isinstance(version, dict) else None
            yield str(spec.get("group")), str(said), str(names.get("kind"))


def _is_manifest(data: bytes) -> bool:
    """Whether a file that cannot be read was meant to hold objects."""
    return b"apiVersion" in data and b"kind" in data


def _is_namespace(text: str) -> bool:
    return _NAMESPACE.fullmatch(text) is not None

"""The fleet that a directory would become: its files, and what is left out.

Called by adoption. Writes nothing. A workspace gets its manifests as they stand below its directory, what kustomize or
helm renders as a directory of its own, and in files of ours what they need: bindings, and Namespaces that they name.
What a kustomization names elsewhere goes, with itself, as it stands to `shared/`, and the workspace names it there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from importlib.resources import files

from reconciler.commands.adopting.grouping import WorkspacePlaces, names, places
from reconciler.commands.adopting.inquiry import Inquiry, Why, WorkspaceNeeds, identities
from reconciler.commands.adopting.kustomized import CHART, Kustomizations
from reconciler.commands.adopting.lookedat import LeftOut, LookedAt, above, within
from reconciler.commands.adopting.made import bindings, namespaces, wrapper
from reconciler.commands.adopting.readings import Readings, is_manifests, meaning
from reconciler.layout.fleet import FILE
from reconciler.layout.tree import ROOT

SHARED = "shared"
_SHARES = f"  rendering:\n    shared: [{SHARED}] # what kustomizations of workspaces name there\n"
_WORKSPACE = b"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
_MOST_RENDERED = 32
"""Directories of a workspace."""


@dataclass(slots=True)
class PlannedWorkspace:
    """`directory`: where it comes from, "" for all that was looked at. `fitted`: it is called otherwise, since no
    workspace may have that name, or another has it. `files`: how many it gets of there, `rendered` its directories that
    programs render."""

    name: str
    directory: str
    fitted: bool
    files: int = 0
    rendered: list[str] = field(default_factory=list)
    exports: list[str] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"root:{self.name}"

    @property
    def place(self) -> str:
        return f"{ROOT}/{self.name}"


@dataclass(slots=True)
class AdoptionPlan:
    """`copied`: by path in the fleet, that of the file which it is a copy of; `made`: the fleet's other files. `left`
    names each file of which there is no copy, by itself or by a directory that it is in."""

    workspaces: list[PlannedWorkspace] = field(default_factory=list)
    copied: dict[str, str] = field(default_factory=dict)
    made: dict[str, bytes] = field(default_factory=dict)
    left: list[LeftOut] = field(default_factory=list)


def plan(looked: LookedAt, top: str) -> AdoptionPlan:
    """`top`: the name of the directory."""
    return _Planning(looked).run(top)


class _Planning:
    def __init__(self, looked: LookedAt) -> None:
        self._looked, self._readings = looked, Readings(looked)
        self._kustomizations = Kustomizations(looked)
        self._inquiry = Inquiry(looked, self._readings, self._kustomizations)
        self._places: WorkspacePlaces = places(looked, self._readings, self._kustomizations)
        self._why: dict[str, Why] = {}
        self._plan = AdoptionPlan()
        self._taken: set[str] = set()
        """What copies take in the fleet, directories too."""

    def run(self, top: str) -> AdoptionPlan:
        units: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for path in sorted(self._looked.files):
            owner = self._places.owner(path)
            if meaning(path):
                self._why[path] = Why(meaning(path), missed=False)
            elif owner is None:
                self._why[path] = self._inquiry.unnamed(path)
            elif not self._is_base(path):
                units[owner][self._unit(path, owner)].append(path)
        named = names(sorted(units), top)
        for directory in sorted(units):
            self._workspace(PlannedWorkspace(named[directory][0], directory, named[directory][1]), units[directory])
        self._leave()
        if self._plan.workspaces:
            self._fleet()
        return self._plan

    def _is_base(self, path: str) -> bool:
        """Whether a file stands in a directory that overlays are made of, and so in nothing else."""
        return not self._places.named and any(each in self._places.bases for each in above(path))

    def _unit(self, path: str, owner: str) -> str:
        """The outermost directory that is rendered between a workspace's and a file; "-" where there is none."""
        around = [each for each in above(path) if within(each, owner)]
        return next((each for each in reversed(around) if self._kustomizations.marker(each)), "-")

    def _workspace(self, workspace: PlannedWorkspace, units: dict[str, list[str]]) -> None:
        plain = [path for path in units.pop("-", []) if self._may_be_manifests(path)]
        resources = (self._kustomizations.reached(each).files for each in units if self._is_kustomized(each))
        crds = (path for each in units for path in self._looked.below(f"{each}/crds".lstrip("/")) if is_manifests(path))
        kinds = self._inquiry.definitions([*plain, *(path for found in resources for path, _ in found), *crds])
        needs = WorkspaceNeeds()
        for unit in sorted(units):
            said = self._inquiry.kustomized(unit, kinds) if self._is_kustomized(unit) else self._inquiry.chart(unit)
            if isinstance(said, WorkspaceNeeds) and len(workspace.rendered) >= _MOST_RENDERED:
                said = Why(f"its workspace would have more than {_MOST_RENDERED} directories that are rendered")
            if isinstance(said, Why):
                self._why.update(dict.fromkeys(units[unit], said))
            else:
                needs |= said
                self._render(workspace, unit)
        needs |= self._plain(workspace, plain, kinds)
        if workspace.files:
            self._furnish(workspace, needs)
            self._plan.workspaces.append(workspace)

    def _may_be_manifests(self, path: str) -> bool:
        if is_manifests(path):
            return True
        self._why[path] = Why("no manifest by its name", missed=False)
        return False

    def _is_kustomized(self, unit: str) -> bool:
        return not self._kustomizations.marker(unit).endswith(CHART)

    def _plain(
        self, workspace: PlannedWorkspace, paths: list[str], kinds: frozenset[tuple[str, str, str]]
    ) -> WorkspaceNeeds:
        needs, first = WorkspaceNeeds(), dict[tuple[str, str, str, str], str]()
        for path in paths:
            said = self._inquiry.plain(path, kinds)
            if isinstance(said, WorkspaceNeeds):
                said = self._again(path, first) or said
            if isinstance(said, Why):
                self._why[path] = said
                continue
            needs |= said
            first.update(dict.fromkeys(identities(self._readings.of(path).objects), path))
            self._copy(path, f"{workspace.place}/{_below(path, workspace.directory)}")
            workspace.files += 1
        return needs

    def _again(self, path: str, first: dict[tuple[str, str, str, str], str]) -> Why | None:
        """Of a file with an object that its workspace has already."""
        seen: set[tuple[str, str, str, str]] = set()
        for each in identities(self._readings.of(path).objects):
            if each in first or each in seen:
                _, kind, namespace, name = each
                text = f"declares {kind} {namespace}/{name} again: {first.get(each, path)} has it"
                return Why(text)
            seen.add(each)
        return None

    def _render(self, workspace: PlannedWorkspace, unit: str) -> None:
        """One directory that is rendered: as it stands, where it is made of nothing else; else by what is shared."""
        below = _below(unit, workspace.directory) or unit.rpartition("/")[2] or "app"
        place = f"{workspace.place}/{below}"
        bases = self._kustomizations.bases(unit) if self._is_kustomized(unit) else frozenset()
        workspace.rendered.append(unit)
        workspace.files += len(self._looked.below(unit))
        if not bases:
            for path in self._looked.below(unit):
                self._copy(path, f"{place}/{_below(path, unit)}")
            return
        for directory in (unit, *bases):
            for path in self._looked.below(directory):
                self._copy(path, f"{SHARED}/{path}")
        self._plan.made[f"{place}/kustomization.yaml"] = wrapper(place, f"{SHARED}/{unit}".rstrip("/"))

    def _copy(self, path: str, to: str) -> None:
        if not meaning(path):
            self._plan.copied[to] = path
            self._taken.update((to, *above(to)))

    def _furnish(self, workspace: PlannedWorkspace, needs: WorkspaceNeeds) -> None:
        """With what its objects need."""
        workspace.exports = sorted(needs.exports - needs.bound)
        workspace.namespaces = sorted(needs.named - needs.declared)
        self._plan.made[f"{workspace.place}/workspace.yaml"] = _WORKSPACE
        for name, data in (
            ("apis.yaml", bindings(workspace.exports)),
            ("namespaces.yaml", namespaces(workspace.namespaces)),
        ):
            path = f"{workspace.place}/{name}"
            while path in self._taken:
                path = f"{workspace.place}/_{path.rpartition('/')[2]}"
            if data:
                self._plan.made[path] = data

    def _leave(self) -> None:
        taken = set(self._plan.copied.values())
        self._plan.left = list(self._looked.left)
        for path in sorted(self._looked.files.keys() - taken):
            why = self._why.get(path, Why("no overlay that is taken is made of it", missed=False))
            self._plan.left.append(LeftOut(path, *why))

    def _fleet(self) -> None:
        templates = files("repo_layout") / "templates"
        fleet = (templates / FILE).read_bytes()
        shares = any(path.startswith(f"{SHARED}/") for path in self._plan.copied)
        self._plan.made[FILE] = fleet.rstrip(b"\n") + b"\n" + (_SHARES.encode() if shares else b"")
        self._plan.made[".gitignore"] = (templates / ".gitignore").read_bytes()


def _below(path: str, directory: str) -> str:
    return path[len(directory) :].lstrip("/")

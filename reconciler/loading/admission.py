"""What is to be made of a commit, by what whoever stands for it may touch.

Made by owners, noted with the fleet while the commit is on its way (FleetRecord.admitted), and gone by in its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from apiserver.registry.tree import USUAL_TYPE
from reconciler.layout.compare import Touched
from reconciler.layout.errors import LayoutError
from reconciler.plan.trespasses import Trespass


class Barred(NamedTuple):
    """A workspace that was touched without a right. `directory` "": no file of it was, but something is said of it, or
    an object of it is to take something of another workspace.
    `spreads`: what stands below its directory may be another, or no workspace any more, for the same reason."""

    path: str
    directory: str
    trespass: Trespass
    spreads: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """What is to be made of a commit. `whole`: why nothing of it is taken; `barred`: the workspaces that are not taken
    further by it; `allows`: by workspace, what was barred there (Trespass.name) and is not from now on. `types`: by
    workspace, the type that whoever made it was asked about, where its workspace.yaml does not name that in full;
    `usual`: so it is with all others that appear, and the usual one."""

    whole: tuple[LayoutError, ...] = ()
    barred: tuple[Barred, ...] = ()
    allows: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    types: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    usual: bool = False

    def among(self, touched: Touched, stood: Callable[[str], str]) -> dict[str, list[Trespass]]:
        """The workspaces that may not go on, of those that a commit touches or says something of. `stood`: where one
        stands as it is served, "" where it does not."""
        out: dict[str, list[Trespass]] = {}
        for each in self.barred:
            if not each.directory:
                out.setdefault(each.path, []).append(each.trespass)
        for path in touched.changed | touched.appeared | touched.removed if self.barred else ():
            place = touched.places.get(path)
            found = (self._of(path, place.directory) if place is not None else None) or self._of(path, stood(path))
            if found is not None:
                out.setdefault(path, []).append(found)
        return out

    def vouched(self, path: str, touched: Touched) -> str:
        """The type of a workspace that was not served so far about which whoever made it was asked; "": about none, or
        one that is named."""
        return self.types.get(path) or (USUAL_TYPE if self.usual and path in touched.appeared else "")

    def _of(self, path: str, directory: str) -> Trespass | None:
        for each in self.barred:
            if not each.directory:
                continue
            below = each.spreads and (directory == each.directory or directory.startswith(f"{each.directory}/"))
            if each.path == path or below:
                return each.trespass
        return None

    def beside(self, more: Admission) -> Admission:
        """With what else is to be made of the same commit."""
        allows = {
            p: self.allows.get(p, frozenset()) | more.allows.get(p, frozenset()) for p in {*self.allows, *more.allows}
        }
        whole, barred = (*self.whole, *more.whole), (*self.barred, *more.barred)
        return Admission(whole, barred, allows, {**self.types, **more.types}, self.usual or more.usual)

    def then(self, later: Admission) -> Admission:
        """Of a commit and one that follows it, in one step."""
        return replace(self.beside(later), usual=self.usual and later.usual)

    @property
    def is_plain(self) -> bool:
        """Whether it holds nobody, and lets nobody go on."""
        return not (self.whole or self.barred or self.allows)

    def as_json(self) -> dict[str, Any]:
        barred = [[e.path, e.directory, e.trespass.as_json(), e.spreads] for e in self.barred]
        allows = {path: sorted(commits) for path, commits in sorted(self.allows.items())}
        said = {"barred": barred, "allows": allows, "types": dict(sorted(self.types.items())), "usual": self.usual}
        return {name: value for name, value in said.items() if value}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Admission:
        barred = (Barred(p, d, Trespass.from_json(t), bool(s)) for p, d, t, s in found.get("barred") or ())
        allows = {path: frozenset(commits) for path, commits in (found.get("allows") or {}).items()}
        return Admission((), tuple(barred), allows, found.get("types") or {}, bool(found.get("usual")))


FREE = Admission()
"""Of a commit about which nobody had to be asked."""

"""What is to be made of a commit, by what whoever stands for it may touch.

Made by owners, noted with the fleet while the commit is on its way (FleetRecord.admitted), and gone by in its step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from reconciler.layout.compare import Touched
from reconciler.layout.errors import LayoutError
from reconciler.plan.trespasses import Trespass


class Barred(NamedTuple):
    """A workspace that was touched without a right. `directory` "": no file of it was, but something is said of it.
    `spreads`: what stands below its directory may be another, or no workspace any more, for the same reason."""

    path: str
    directory: str
    trespass: Trespass
    spreads: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """What is to be made of a commit. `whole`: why nothing of it is taken; `barred`: the workspaces that are not taken
    further by it; `allows`: by workspace, the commits that were barred there and are not from now on."""

    whole: tuple[LayoutError, ...] = ()
    barred: tuple[Barred, ...] = ()
    allows: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    def among(self, touched: Touched, stood: Callable[[str], str]) -> dict[str, Trespass]:
        """The workspaces that may not go on, of those that a commit touches or says something of. `stood`: where one
        stands as it is served, "" where it does not."""
        out = {each.path: each.trespass for each in self.barred if not each.directory}
        for path in touched.changed | touched.appeared | touched.removed if self.barred else ():
            place = touched.places.get(path)
            found = (self._of(path, place.directory) if place is not None else None) or self._of(path, stood(path))
            if found is not None:
                out[path] = found
        return out

    def _of(self, path: str, directory: str) -> Trespass | None:
        for each in self.barred:
            below = each.spreads and (directory == each.directory or directory.startswith(f"{each.directory}/"))
            if each.path == path or below:
                return each.trespass
        return None

    def then(self, later: Admission) -> Admission:
        """Of a commit and one that follows it, in one step."""
        allows = {
            p: self.allows.get(p, frozenset()) | later.allows.get(p, frozenset()) for p in {*self.allows, *later.allows}
        }
        return Admission((*self.whole, *later.whole), (*self.barred, *later.barred), allows)

    @property
    def is_plain(self) -> bool:
        """Whether it makes no difference."""
        return not (self.whole or self.barred or self.allows)

    def as_json(self) -> dict[str, Any]:
        barred = [[e.path, e.directory, e.trespass.as_json(), e.spreads] for e in self.barred]
        allows = {path: sorted(commits) for path, commits in sorted(self.allows.items())}
        return {name: value for name, value in (("barred", barred), ("allows", allows)) if value}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Admission:
        barred = (Barred(p, d, Trespass.from_json(t), bool(s)) for p, d, t, s in found.get("barred") or ())
        allows = {path: frozenset(commits) for path, commits in (found.get("allows") or {}).items()}
        return Admission((), tuple(barred), allows)


FREE = Admission()
"""Of a commit about which nobody had to be asked."""

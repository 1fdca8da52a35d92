"""`treeplane init --from DIR [TO]`: proposes a fleet for a directory that is none, and writes it to TO.

Called by the command line. See adopting.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apiserver.model.counts import counted
from reconciler.commands.adopting.lookedat import look
from reconciler.commands.adopting.planning import AdoptionPlan, PlannedWorkspace, plan
from reconciler.commands.adopting.writing import require_place, write
from reconciler.commands.failure import USAGE, Failure
from reconciler.commands.initialize import next_steps, then_steps
from reconciler.commands.validate import Checked, validate_path
from reconciler.layout.fleet import FILE

_TOLD = 20
"""Lines of files that are left out, and of errors."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """`checked`: what validating the fleet gave, None where nothing was written."""

    source: Path
    to: Path
    plan: AdoptionPlan
    dry: bool
    checked: Checked | None
    steps: tuple[str, ...] = ()
    then: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """1 where something is not served that was meant to be."""
        wrong = self.checked is not None and self.checked.problems
        return 1 if wrong or not self.plan.workspaces or any(each.missed for each in self.plan.left) else 0

    def lines(self) -> list[str]:
        said = [_line(each, self.dry) for each in self.plan.workspaces]
        said += self._left() + self._problems()
        created, taken, left = len(self.plan.workspaces), len(set(self.plan.copied.values())), len(self.plan.left)
        would = "would be " if self.dry else ""
        said += [
            "",
            f"{counted(created, 'workspace')} {would}created in {self.to}, {counted(taken, 'file')} taken, "
            f"{left} left out",
        ]
        if not self.plan.workspaces:
            return [*said, f"nothing in {self.source} can be served, so nothing is written"]
        if self.dry:
            return said
        said += ["", "next:", *(f"  {step}" for step in self.steps)]
        return [*said, "and in a second terminal, in the same directory:", *(f"  {step}" for step in self.then)]

    def data(self) -> dict[str, Any]:
        problems = [] if self.checked is None else [str(each) for each in self.checked.problems]
        return {
            "from": str(self.source),
            "to": str(self.to),
            "dryRun": self.dry,
            "workspaces": [_data(each) for each in self.plan.workspaces],
            "files": [{"from": each, "to": to} for to, each in sorted(self.plan.copied.items())],
            "created": sorted(self.plan.made),
            "left": [each._asdict() for each in self.plan.left],
            "problems": problems,
            "next": [*self.steps],
            "then": [*self.then],
        }

    def _left(self) -> list[str]:
        """What is missed first."""
        found = sorted(self.plan.left, key=lambda each: not each.missed)
        said = [f"  {each.path}: {each.reason}" for each in found[:_TOLD]]
        more = [f"  and {len(found) - _TOLD} more: -o json lists them"] if len(found) > _TOLD else []
        return ["left out:", *said, *more] if found else []

    def _problems(self) -> list[str]:
        problems = self.checked.problems if self.checked is not None else ()
        more = [f"  and {len(problems) - _TOLD} more: treeplane validate lists them"] if len(problems) > _TOLD else []
        said = [f"  {each}" for each in problems[:_TOLD]]
        return ["wrong in what is written:", *said, *more] if problems else []


def adopt(source: Path, to: Path, *, dry: bool = False) -> Adopted:
    """Raises Failure: what stands in `source` alone is no reason for that, as long as it is no fleet."""
    if (source / FILE).is_file():
        raise Failure(f"{source} is a fleet: it has a {FILE}", f"serve it: treeplane up {source}", USAGE)
    require_place(to, source)
    looked = look(source)
    planned = plan(looked, source.resolve().name)
    if dry or not planned.workspaces:
        return Adopted(source, to, planned, dry, None)
    private = {path for path, each in planned.copied.items() if each in looked.private}
    write(to, planned.made | {path: looked.files[each] for path, each in planned.copied.items()}, private)
    first = planned.workspaces[0].path
    return Adopted(
        source,
        to,
        planned,
        dry,
        validate_path(to),
        next_steps(to),
        then_steps(first, "kubectl get all --all-namespaces"),
    )


def _line(workspace: PlannedWorkspace, dry: bool) -> str:
    of = workspace.directory or "the whole directory"
    said = f"{workspace.path} {'would be created' if dry else 'created'}: {counted(workspace.files, 'file')} of {of}"
    said += " (its own name is another one's, or none that a workspace may have)" if workspace.fitted else ""
    said += f"; rendered: {', '.join(each or '.' for each in workspace.rendered)}" if workspace.rendered else ""
    said += f"; bound: {', '.join(workspace.exports)}" if workspace.exports else ""
    return said + (f"; Namespaces declared: {', '.join(workspace.namespaces)}" if workspace.namespaces else "")


def _data(workspace: PlannedWorkspace) -> dict[str, Any]:
    return {
        "path": workspace.path,
        "from": workspace.directory or ".",
        "fitted": workspace.fitted,
        "files": workspace.files,
        "rendered": [each or "." for each in workspace.rendered],
        "bound": workspace.exports,
        "namespaces": workspace.namespaces,
    }

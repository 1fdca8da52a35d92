"""What a change would do, as it is told: by workspace, object and field, and by sync target.

Made by foresight, told by telling. Values only; what they say is a stranger's text, and whoever shows it makes it
harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from reconciler.layout.errors import LayoutError
from reconciler.loading.changeset import ChangeKind
from reconciler.plan.deletions import RefusedDeletion
from reconciler.plan.pushedby import NOBODY, PushedBy
from reconciler.review.fields import FieldChange


class ObjectName(NamedTuple):
    """Of one object. `resource` with its group, `namespace` "" for cluster-scoped ones."""

    workspace: str
    kind: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """`file`: that declares it, before where it goes; `fields`: of one that was there and stays."""

    object: ObjectName
    change: ChangeKind
    file: str
    fields: tuple[FieldChange, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceDifference:
    """`moved_from`: the path that it had. `objects`: those that files declare; `others`: how many come or go with them
    (what its type brings, what every workspace has). `why`: of one that would be held."""

    path: str
    change: ChangeKind
    objects: tuple[ObjectDifference, ...] = ()
    others: int = 0
    moved_from: str = ""
    why: tuple[LayoutError, ...] = ()


class ReviewedCommit(NamedTuple):
    """One that the change brings. `author`: as it says itself, which may be anything; `by`: who pushed it, NOBODY as
    long as nobody did or it is not known."""

    id: str
    author: str
    subject: str
    by: PushedBy = NOBODY


class CopyChange(NamedTuple):
    """What becomes of an object's copy on a sync target: `gets`, `changes` or `loses`. `placement`: by which it is
    there, or was; `why`: the rule of it."""

    verb: str
    object: ObjectName
    placement: str
    why: str


@dataclass(frozen=True, slots=True)
class TargetDifference:
    """Of one sync target (`root:infra:eu-west`)."""

    target: str
    copies: tuple[CopyChange, ...]


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that is taken, and that may not be meant. `path`: the workspace; `file`: where it is said."""

    path: str
    file: str
    text: str


@dataclass(frozen=True, slots=True)
class ChangeReview:
    """`base`, `target`: what was compared, in words, with the commits. `settings`: what of treeplane.yaml is another.
    `problems`: why all of it would be held. `refused`: the deletions that have to be allowed first, by the uppermost
    workspace; `renames`: directories that seem to move and do not say so. `notes`: what limits what is said here.
    `brings`: the first-parent commits that `target` has and `base` has not, oldest first. A workspace is unchanged
    whose files change and whose objects do not. `waiting`: by a workspace with a mistake, those that would be held for
    that; of them those are among `workspaces` too of which there is something else to be told."""

    base: str
    target: str
    commits: tuple[CommitRef, CommitRef]
    settings: tuple[FieldChange, ...] = ()
    workspaces: tuple[WorkspaceDifference, ...] = ()
    targets: tuple[TargetDifference, ...] = ()
    problems: tuple[LayoutError, ...] = ()
    warnings: tuple[Warned, ...] = ()
    refused: dict[str, RefusedDeletion] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    brings: tuple[ReviewedCommit, ...] = ()
    waiting: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether anything would be another than it is."""
        changed = any(each.change is not ChangeKind.UNCHANGED for each in self.workspaces)
        return changed or bool(self.settings or self.targets) or self.holds

    @property
    def holds(self) -> bool:
        """Whether something of it would not be taken."""
        return bool(self.problems or self.waiting) or any(each.why for each in self.workspaces)

    def errors(self) -> Iterator[LayoutError]:
        """All of them, each once, by file and line."""
        yield from sorted({*self.problems, *(error for each in self.workspaces for error in each.why)})

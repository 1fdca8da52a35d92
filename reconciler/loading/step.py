"""What a step starts from. See steps; what it comes to is a ChangeSet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.asked import NOTHING, Asked
from reconciler.loading.case import Recorded
from reconciler.loading.moment import Moment
from reconciler.loading.unsealing import WorkspaceKeys
from reconciler.plan.deletions import Limits

Secrets = Callable[[str], tuple[Manifest, ...]]
"""The Secrets of keys/secrets/ for a workspace path."""

FindKeys = Callable[[str], WorkspaceKeys]
"""The keys of keys/age/ for a workspace path."""

FindRecorded = Callable[[str, str], Recorded | None]
"""What the status branch knows of a workspace: (path, directory)."""


Carry = Callable[[Mapping[str, str]], None]
"""Moves what hangs on the paths of workspaces beside the store: by the old path of each the new one. Done again, it
does nothing."""


class SafetyLimits(NamedTuple):
    """As the served commit says. `workspaces` None: any number; `since`: that commit."""

    objects: Limits
    workspaces: int | None
    since: CommitRef


class LostFleet(NamedTuple):
    """What a recovery began from that could not bring every workspace back. `commit`: what was served by then;
    `claims`: see FleetRecord, as of that."""

    find: FindRecorded
    commit: CommitRef
    claims: Mapping[str, str]

    def served(self, path: str, directory: str) -> tuple[Recorded | None, CommitRef, Mapping[str, str]]:
        """What is known of a workspace, the commit that it was served at, and the claims that counted there."""
        found = self.find(path, directory)
        held = found.summary.served if found is not None else None
        return found, held or self.commit, found.summary.claims if found is not None and held else self.claims


@dataclass(frozen=True, slots=True)
class StepTarget:
    """Where a step goes: the commit, its tree, and what its way of working needs.

    `served`, `arriving`: see FleetRecord.commit and FleetRecord.arriving, when it begins. `passed`: of the latter the
    step's own commit and those that come after it: a workspace that is at one of them when it is met stays there.
    `left`: those that the head does not contain, so that whoever is at one of them goes from there.
    `recorded` gives, at recovery, what the status branch knows of a workspace. `lost`: the same after a recovery that
    could not bring every workspace back. `limits`: of what may be deleted, None where nothing is served yet. `kept`:
    workspaces that stay with all below them although their directories are gone, and the commit that was served before
    those went. `asked`: writes through the API that wait. `absent`: workspaces of the tree that a commit on its way had
    taken away already, at recovery; `leaving`: those that waited for finalizers then, since a commit took them away;
    `staying`: those that were held then for a commit on its way: what that says of them is not judged here. `carry`:
    for those that move. `admission`: what the commit may touch.
    """

    moment: Moment
    tree: WorkspaceTree
    served: CommitRef
    arriving: tuple[CommitRef, ...]
    secrets: Secrets
    keys: FindKeys
    recorded: FindRecorded | None = None
    lost: LostFleet | None = None
    limits: SafetyLimits | None = None
    kept: Mapping[str, CommitRef] = field(default_factory=dict)
    asked: Asked = NOTHING
    passed: frozenset[CommitRef] = frozenset()
    left: tuple[CommitRef, ...] = ()
    absent: Collection[str] = ()
    leaving: Collection[str] = ()
    staying: Collection[str] = ()
    carry: Carry = lambda _: None
    admission: Admission = FREE

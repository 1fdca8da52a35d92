"""What a step starts from and what it did. See steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.case import Recorded
from reconciler.loading.moment import Moment
from reconciler.plan.deletions import Limits, Refused

Secrets = Callable[[str], tuple[Manifest, ...]]
"""The Secrets of keys/secrets/ for a workspace path."""

FindRecorded = Callable[[str, str], Recorded | None]
"""What the status branch knows of a workspace: (path, directory)."""


@dataclass(slots=True)
class Step:
    """What a step did: workspaces judged, moved (something was written), held with their problems, removed, and mended
    (held before and good now). `faults`: those held for a fault of this program. `refused`: deletions that have to be
    allowed, by the uppermost workspace that they concern. `kept`: see Target, as it is now. `later`: workspaces beyond
    the step's commit, which have to be judged anew where they are."""

    judged: int = 0
    moved: list[str] = field(default_factory=list)
    held: dict[str, list[LayoutError]] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    faults: set[str] = field(default_factory=set)
    refused: dict[str, Refused] = field(default_factory=dict)
    kept: dict[str, CommitRef] = field(default_factory=dict)
    later: set[str] = field(default_factory=set)


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
class Target:
    """Where a step goes: the commit, its tree, and what to do there.

    `served`, `arriving`: see FleetRecord.commit and FleetRecord.arriving, when it begins. `passed`: of the latter the
    step's own commit and those that come after it: a workspace that is at one of them when it is met stays there.
    `left`: those that the head does not contain, so that whoever is at one of them goes from there.
    `recorded` gives, at recovery, what the status branch knows of a workspace. `lost`: the same after a recovery that
    could not bring every workspace back. `fresh`: the store holds nothing yet.
    `limits`: of what may be deleted, None where nothing is served yet. `kept`: workspaces that stay with all below them
    although their directories are gone, and the commit that was served before those went. `intents`: writes through
    the API that wait. `proposed`: the commit was made of them and may still not become the branch's, so nothing is
    written before `release`.
    """

    moment: Moment
    tree: WorkspaceTree
    served: CommitRef
    arriving: tuple[CommitRef, ...]
    secrets: Secrets
    recorded: FindRecorded | None = None
    lost: LostFleet | None = None
    fresh: bool = False
    limits: SafetyLimits | None = None
    kept: Mapping[str, CommitRef] = field(default_factory=dict)
    passed: frozenset[CommitRef] = frozenset()
    left: tuple[CommitRef, ...] = ()
    intents: Mapping[Key, Intent] = field(default_factory=dict)
    proposed: bool = False

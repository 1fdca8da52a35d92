"""One workspace to be judged at one commit, and the verdict. See judge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from apiserver.model import commits
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.keys import Key
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.errors import LayoutError
from reconciler.layout.grafts import OF
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.asked import NOTHING, Asked
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.moment import Moment
from reconciler.loading.sources import Content
from reconciler.loading.unsealing import SHOWN, WorkspaceKeys
from reconciler.plan.summary import Summary
from reconciler.plan.trespasses import Trespasses
from reconciler.statusbranch import format

Object = dict[str, Any]


class Pinned(NamedTuple):
    """What the pin of a workspace that is judged comes to. `said`: what its record says of it, {} where it counts for
    nothing; `over`: the name of one that is over; `due`: when it will be, see WorkspaceRecord; `there`: whether there
    is one, be it good or not."""

    said: Mapping[str, str] = MappingProxyType({})
    over: str = ""
    due: int = 0
    there: bool = False


UNPINNED = Pinned()


class Sourced(NamedTuple):
    """What the source of a workspace that is judged comes to. `said`: what its record says of it, {} where nothing is
    served from there with this verdict; `follows`: see WorkspaceRecord. `there`: whether there is one, be it good or
    not. `allows`: what commits that came since what is served allow (see guard). `seen`: of a workspace that stands in
    a tenant's repository, the commit there by which it is judged; `of`: the logical cluster of the one whose source
    that is."""

    said: Mapping[str, str] = MappingProxyType({})
    follows: Mapping[str, str] = MappingProxyType({})
    there: bool = False
    allows: Callable[[], Collection[str]] = tuple
    seen: CommitRef = NONE

    @property
    def of(self) -> str:
        return self.follows.get(OF, "")

    @property
    def commit(self) -> CommitRef:
        """That the content is of, NONE where it is none of a source."""
        return commits.parse(self.said.get("commit", ""))


UNSOURCED = Sourced()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the status branch knows of a workspace: its summary, the residue of its objects, and those that wait for
    their finalizers. `plain`: nothing is known of its objects but what git says; `apart`: its directory was
    another's."""

    summary: Summary
    residue: Callable[[Key], Object | None] = lambda _: None
    endings: Callable[[], Iterable[Object]] = tuple
    plain: bool = True
    apart: bool = False


def was_served(recorded: Recorded | None) -> bool:
    """Whether the status branch says that a workspace had a good commit."""
    return recorded is not None and recorded.summary.served != NONE


def is_lost(record: WorkspaceRecord, recorded: Recorded | None) -> bool:
    """Whether a workspace had a good commit and is not served, since a recovery could not bring it back. Another one
    that has its path by now never was served."""
    return (
        not record.served and recorded is not None and was_served(recorded) and recorded.summary.origin == record.origin
    )


class Coming(Enum):
    """How a workspace comes to a step; `ways` says which phases it passes then."""

    NEW = "new"
    """Nothing of it is looked for in the store; its writes are refused where something is."""
    CHANGED = "changed"
    """What differs from what it is served with counts."""
    WHOLE = "whole"
    """All of it counts: its type changed, or its secrets, or who knows what."""
    PROVIDED = "provided"
    """The same, but others provide something else: where that makes no difference to its content, that is not read."""
    RETURNING = "returning"
    """It is brought back as the status branch knows it."""
    RETURNING_AGAIN = "returning again"
    """The same, where some of it may be there."""


class Case(NamedTuple):
    """`directory` None: a workspace that ships with Treeplane and has no directory. `record`: as it is served now, None
    if it is new. `problems`: what is wrong already (found by layout). `recorded`: of one that is brought back. `asked`:
    what is asked for through the API of its objects. `trespasses`: what was done to it without a right. `vouched`: of
    one that was not served so far, the type that whoever made it was asked about, "" where that does not matter.
    `stays`: the commit has it no more, and it stays until that is allowed; `removed`: what is to be said of that where
    it does not stand in the way of one that is brought back; `apart`: its directory is another's by then.
    `content`: where its own content is read,
    None where it has no directory; `pinned`, `sourced`: what the pin or the source comes to that its workspace.yaml
    says. `keys`: what opens its encrypted files. `behind`: of one that a recovery could not bring back until now, the
    commit that has it otherwise than it was served."""

    path: str
    coming: Coming
    moment: Moment
    tree: WorkspaceTree
    directory: WorkspaceDir | None
    record: WorkspaceRecord | None
    problems: tuple[LayoutError, ...] = ()
    recorded: Recorded | None = None
    secrets: tuple[Manifest, ...] = ()
    keys: WorkspaceKeys = SHOWN
    asked: Asked = NOTHING
    trespasses: Trespasses = Trespasses()
    vouched: str = ""
    stays: bool = False
    removed: LayoutError | None = None
    apart: bool = False
    content: Content | None = None
    pinned: Pinned = UNPINNED
    sourced: Sourced = UNSOURCED
    behind: CommitRef = NONE

    @property
    def stands(self) -> str:
        """The directory that its record is to name."""
        if self.apart:
            return format.apart(self.path)
        return self.directory.directory if self.directory is not None else ""

    @property
    def said_at(self) -> CommitRef:
        """The commit that says what its files say: of another repository where they stand there."""
        return self.sourced.commit or self.moment.commit

    @property
    def origin(self) -> CommitRef:
        """The commit in which the workspace appears, if it is new here."""
        if self.recorded is not None:
            return self.recorded.summary.origin
        return self.sourced.seen or self.moment.commit


class Needs(NamedTuple):
    """Instead of a verdict: the workspace whose word has to be known first."""

    path: str


@dataclass(slots=True)
class Verdict:
    """`record` is what the workspace's will be, `changes` what is written for that. `again`: it is to be judged again
    once this stands. `alone`: it follows from its place, its files and its type, and nothing else was asked."""

    record: WorkspaceRecord
    changes: WorkspaceChanges
    again: bool = False
    alone: bool = False

    @property
    def problems(self) -> list[LayoutError]:
        return self.changes.why

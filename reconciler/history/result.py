"""What the history of a fleet's files tells: commits with who is behind them, what they did to objects, who set fields.

Made by log, blame and trace, told by telling. Values only; what they say is a stranger's text, and whoever shows it
makes it harmless.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from apiserver.model import clock
from reconciler.loading.changeset import ChangeKind
from reconciler.plan.pushedby import PushedBy
from reconciler.review.result import ObjectName


class SignatureState(Enum):
    """What a commit's signature comes to."""

    GOOD = "good"
    SERVER = "server"
    """By the server's own key."""
    NONE = "none"
    UNKNOWN = "unknown"
    LAPSED = "lapsed"
    BAD = "bad"


class SignedBy(NamedTuple):
    """`user`: whose key it is, where that is known. `why`: it is not good."""

    state: SignatureState
    user: str = ""
    key: str = ""
    why: str = ""


class ObjectWriter(NamedTuple):
    """Who wrote one object of a commit that the server made of several users' writes. `known`: the commit is the
    server's own; else its author claims so, and nobody else says it."""

    user: str
    known: bool


class ToldCommit(NamedTuple):
    """`time`: the committer's, in seconds since 1970. `author`: as the commit says itself, which may be anything;
    `signer`: whose key signed it; `pusher`: who is known to have brought it to the branch."""

    id: str
    time: int
    author: str
    signer: SignedBy
    pusher: PushedBy
    subject: str


class ObjectStep(NamedTuple):
    """What a commit did to an object. `file`, `line`: that declares it, before where it goes; `line` 0: not known."""

    object: ObjectName
    change: ChangeKind
    file: str
    line: int = 0
    moved_from: str = ""
    writer: ObjectWriter | None = None


class WorkspaceStep(NamedTuple):
    """What a commit did to a workspace, and to those of its objects that are asked about. `moved_from`: its directory
    until then; `moved_to`: of one that is elsewhere from then on. `writer`: of its Workspace that comes or goes."""

    path: str
    directory: str
    change: ChangeKind
    objects: tuple[ObjectStep, ...] = ()
    moved_from: str = ""
    moved_to: str = ""
    writer: ObjectWriter | None = None


class LogEntry(NamedTuple):
    """One commit. `more`: it touches more workspaces than are told. `notes`: what could not be read, and claims that
    fit nothing."""

    commit: ToldCommit
    workspaces: tuple[WorkspaceStep, ...]
    more: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetLog:
    """`head`: what was looked at, in words, and its commit. `more`: there are older commits that are not told."""

    head: str
    commit: str
    entries: tuple[LogEntry, ...]
    more: bool = False


class SetField(NamedTuple):
    """A field of an object as it is declared. `commit`: the index of the one that last set it in
    `ObjectBlame.commits`; `file`, `line`: where it stands in that commit."""

    field: str
    value: Any
    commit: int
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class ObjectBlame:
    """`file`, `line`: of the object, as of `head`. `commits`: those that set a field, the newest first, each with who
    wrote the object, where the commit has several authors."""

    object: ObjectName
    head: str
    commit: str
    file: str
    line: int
    fields: tuple[SetField, ...]
    commits: tuple[tuple[ToldCommit, ObjectWriter | None], ...]
    notes: tuple[str, ...] = ()


class CopyDifference(NamedTuple):
    """A field of a copy that does not say what is declared: both as JSON or Untold."""

    field: str
    declared: Any
    there: Any


class TracedPlacement(NamedTuple):
    """By which Placement a copy is on its sync target. `rule`: why there. `synced`: what the status branch says of its
    syncing, since when: `True`, `False` or "", with a message."""

    name: str
    rule: str
    since: str
    synced: str = ""
    synced_since: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ObjectTrace:
    """Where a copy comes from. `commit`: that last changed what the object says; `served`: the commit that its
    workspace is served at, of which `file` and `line` are. `recorded`: the status commit that was the first to say so,
    with its time ("" where that is older than the history of the status branch). `observed`: whether the target has
    looked at it as it is now, None where its kind does not tell. `differs`: of a copy that was given, None of none."""

    object: ObjectName
    target: str
    file: str
    line: int
    commit: ToldCommit
    writer: ObjectWriter | None
    served: str
    recorded: str
    recorded_at: str
    placements: tuple[TracedPlacement, ...]
    observed: bool | None = None
    differs: tuple[CopyDifference, ...] | None = None
    notes: tuple[str, ...] = ()


def moment(seconds: int) -> str:
    """A commit's time, which is anybody's number, as RFC 3339; as the number where it is no time."""
    try:
        return clock.rfc3339(seconds)
    except (ValueError, OverflowError, OSError):
        return str(seconds)


class NotFound(Exception):
    """What is asked about is not there. `hint`: the nearest that is, or what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint

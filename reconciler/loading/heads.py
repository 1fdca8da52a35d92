"""Whether a head of the desired branch is followed, and along which commits.

Called by loader for every head. A head is followed by itself only if it contains the served commit: a branch that went
back, or was rewritten, would delete what it no longer says, and it may be no more than a replica that lags behind. What
is done then is the fleet's to say, in the commit that is served.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.model.commits import CommitRef, own
from reconciler.layout.errors import LayoutError
from reconciler.loading.vouching import Vouching
from reconciler.repository.objects import Repository
from reconciler.repository.trailers import said, said_by

ALLOW = "Allow-Rewrite"
"""The trailer of a commit: the served commit that may be left."""

FOLLOW, HOLD = "Follow", "Hold"
_SHORTEST = 7


@dataclass(frozen=True, slots=True)
class BranchSettings:
    """The branch that a loader follows.

    `url`: the server's, recorded for whoever reads the store. `rewrites`: FOLLOW or HOLD, where the fleet does not say.
    `take`: a head (its id, or the beginning of it) that is followed whatever stands against it. `command`: makes the
    command line that takes a head, for messages. `keep`: keeps what a head (the second) leaves of the first commit.
    `status`: the repository that a commit may have the status branch in, though it is elsewhere (OWN for the fleet's).
    `most_objects`: see Site. `vouching`: who stands for commits, None where that is nobody's business (of what is not
    to be served).
    """

    name: str = "main"
    url: str = ""
    rewrites: str = FOLLOW
    take: str = ""
    command: Callable[[str], str] = lambda head: f"treeplane up --take-head {head}"
    keep: Callable[[str, str], object] = lambda _, __: None
    status: str = ""
    most_objects: int = 0
    vouching: Vouching | None = None

    def takes(self, head: CommitRef) -> bool:
        """Whether who runs the server named this very head."""
        return len(self.take) >= _SHORTEST and head.id.startswith(self.take)


class Route(NamedTuple):
    """From the served commit to a head: the commits to judge in turn, or why it is not gone. `leaves`: the head does
    not contain the served commit."""

    commits: list[CommitRef]
    leaves: bool = False
    problems: tuple[LayoutError, ...] = ()


def route(
    repo: Repository,
    settings: BranchSettings,
    rewrites: str,
    served: CommitRef,
    head: CommitRef,
    *,
    known: bool = False,
) -> Route:
    """`rewrites`: as the served commit says, "" where it does not. `known`: somebody has to stand for a branch that
    goes elsewhere: who made a commit, and signed it, did so for good, and did not put it in the place of another one.
    Then the head itself has to say that it leaves what is served."""
    if served == head:
        return Route([])
    if not repo.has(served.id):
        return _elsewhere(repo, settings, rewrites, served, head, known=known)
    chain = repo.first_parents(served.id, head.id)
    if chain is not None:
        return Route([own(commit) for commit in chain])
    if repo.is_ancestor(served.id, head.id):
        return Route([head])  # merged the other way round: one difference, in which what stood keeps its identity
    return _elsewhere(repo, settings, rewrites, served, head, known=known)


def _elsewhere(
    repo: Repository, settings: BranchSettings, rewrites: str, served: CommitRef, head: CommitRef, *, known: bool
) -> Route:
    problem = _problem(repo, settings, rewrites, served, head, known=known)
    return Route([head], leaves=True, problems=(problem,) if problem is not None else ())


def _problem(
    repo: Repository, settings: BranchSettings, rewrites: str, served: CommitRef, head: CommitRef, *, known: bool
) -> LayoutError | None:
    if (rewrites or settings.rewrites) == FOLLOW and not known:
        return None
    if settings.takes(head):
        return None
    if repo.has(served.id) and repo.is_ancestor(head.id, served.id):
        text = f"went back to {head}, behind {served}, which is served; nothing is deleted for that"
        hint = f"push what it had again; to undo commits, revert them: git revert {head:.12}..{served:.12}"
        return LayoutError(settings.name, 0, 0, text, f"{hint}; or, in an emergency: {settings.command(head.id)}")
    if served.id in (said_by(repo, head.id, ALLOW) if known else said(repo, head.id, served.id, ALLOW)):
        return None
    text = f"was rewritten: {head} does not contain {served}, which is served; nothing is deleted for that"
    allow = f"git commit --allow-empty -m 'Take the rewritten branch' -m '{ALLOW}: {served}'"
    hint = f"to follow it, push: {allow}; or start with: {settings.command(head.id)}"
    return LayoutError(settings.name, 0, 0, text, hint)

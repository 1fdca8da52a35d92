"""Whether commits are signed by whom the fleet trusts (spec.verification), before anything of them is taken.

Called by gate and entrance, and by firstload for the first commit of all. What is trusted is as it is served: in
`Every` the signers that a commit's first parent names, which was looked at by then, in `Head` those of the served
commit, and at first the server's own.

A commit that is good once is good for ever: what was served is not asked again, however keys expire and signers go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from apiserver.model.commits import NONE, CommitRef, own
from apiserver.registry.tree import FleetRecord
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import HEAD, UNSIGNED, FleetConfig
from reconciler.loading.vouching import KEYS, Vouching
from reconciler.repository.objects import Repository
from reconciler.signatures.verifier import NotVerified
from reconciler.statusbranch.claim import TAKES_OVER

_MOST = 10_000
"""First-parent commits that are looked at."""
_MERGED = 1_000
"""Commits that one merges, and whose messages are looked at."""
_ALLOWS = "allow-"
"""What all trailers begin with that allow something."""
TIPS = 16
"""Heads that were served and left again of which it is known that they were good."""


@dataclass(frozen=True, slots=True)
class ComingCommit:
    """A commit that is to be taken. `served`: what is served, or will be by then; `skipped`: commits on the way from
    there, nothing of which could be taken; `later`: those that come after it. `config`: as it is served. `verified`:
    heads that were good once, beside `served`."""

    commit: CommitRef
    served: CommitRef
    config: FleetConfig
    later: Sequence[CommitRef] = ()
    skipped: Sequence[CommitRef] = ()
    verified: Sequence[CommitRef] = ()

    @property
    def way(self) -> Iterator[tuple[CommitRef, CommitRef]]:
        """What comes with it: each commit, and the one that it follows."""
        return zip((*self.skipped, self.commit), (self.served, *self.skipped), strict=True)

    def after(self, commit: CommitRef) -> Sequence[CommitRef]:
        """What comes after one of them."""
        every = (*self.skipped, self.commit, *self.later)
        return every[every.index(commit) + 1 :]


@dataclass(frozen=True, slots=True)
class Verification:
    """Of one repository. `branch`: its name, for messages; `command`: makes the command line that takes a head whatever
    stands against it."""

    repo: Repository
    vouching: Vouching
    branch: str
    command: Callable[[str], str] | None = None

    def head(self, at: ComingCommit) -> tuple[LayoutError, ...]:
        """Why a head is not followed at all; asked once, before the first of its commits is taken."""
        if at.config.verification != HEAD:
            return ()
        return self._unsigned(self.speaker(at.commit, at), self.tree(at.served), at)

    def first(self, head: CommitRef, config: FleetConfig) -> tuple[LayoutError, ...]:
        """The same of the first commit of all, of which nothing is trusted but the server's own list of signers. That
        there is one says that it counts, whatever the commit says of itself."""
        if config.verification == UNSIGNED and not self.vouching.keeps_a_list:
            return ()
        return self._unsigned(self.speaker(head), "", None)

    def recorded(self, status: CommitRef, source: CommitRef, config: FleetConfig) -> tuple[LayoutError, ...]:
        """The same of a commit that the status branch says was served: it was, where this server says so, and did not
        only take over what another said."""
        said = status
        while self.repo.commit(said.id).message.startswith(TAKES_OVER) and self.vouching.is_ours(self.repo, said):
            said = own(self.repo.commit(said.id).parents[0])
        return () if self.vouching.is_ours(self.repo, said) else self.first(source, config)

    def chain(self, at: ComingCommit) -> tuple[LayoutError, ...]:
        """Of all first-parent commits that were never served, the oldest first: each by those whom the one before it
        names, which was looked at by then."""
        chain = self._new(at)
        if chain is None:
            text = f"has more than {_MOST:,} commits that are not verified"
            return (self._problem(at.commit, text, "push them in parts"),)
        for commit in (each for each in chain if not self._is_others(each.id)):
            parents = self.repo.commit(commit.id).parents
            trusted = self.tree(own(parents[0])) if parents else ""
            problems = self._unsigned(commit, trusted, at)
            if problems:
                return problems
        return ()

    def _new(self, at: ComingCommit) -> list[CommitRef] | None:
        """None where they are too many."""
        found: list[CommitRef] = []
        commit: str | None = at.commit.id
        while commit is not None and not self._was_good(commit, at):
            found.append(own(commit))
            if len(found) > _MOST:
                return None
            commit = next(iter(self.repo.commit(commit).parents), None)
        return found[::-1]

    def speaker(self, head: CommitRef, at: ComingCommit | None = None) -> CommitRef:
        """The commit whose word a head is, along first parents: it, or the last one that was anything to the fleet."""
        commit = head.id
        while self._is_others(commit) and (at is None or not self._was_good(commit, at)):
            commit = self.repo.commit(commit).parents[0]
        return own(commit)

    def _is_others(self, commit: str) -> bool:
        """Whether a commit leaves the fleet's folder as it was, and allows nothing: in a repository that others
        work in, too, who made it says nothing."""
        repo, parents = self.repo, self.repo.commit(commit).parents
        if repo.folders == ("",) or not parents or repo.fleet_at(commit) != repo.fleet_at(parents[0]):
            return False
        brought = [*islice(repo.new_commits(commit, parents[0]), _MERGED + 1)]
        return len(brought) <= _MERGED and not any(_ALLOWS in each.message.lower() for each in brought)

    def _was_good(self, commit: str, at: ComingCommit) -> bool:
        """Whether it is on the way to something that was served, along first parents: what was merged into that was
        not looked at by itself."""
        tips = [each.id for each in (at.served, *at.verified) if each != NONE and self.repo.has(each.id)]
        return any(
            commit == tip or (self.repo.is_ancestor(commit, tip) and self.repo.first_parents(commit, tip) is not None)
            for tip in tips
        )

    def _unsigned(self, commit: CommitRef, trusted: str, at: ComingCommit | None) -> tuple[LayoutError, ...]:
        if at is not None and self._was_good(commit.id, at):
            return ()
        try:
            self.vouching.signer(self.repo, commit, trusted)
        except NotVerified as bad:
            where = "signers/ of what is served" if trusted else KEYS
            hint = f"sign it by a key that {where} names, or take it off the branch"
            return (self._problem(commit, f"is not taken, since {bad.why}", hint),)
        return ()

    def unsigned(self, repo: Repository, commit: CommitRef, served: CommitRef) -> str:
        """Why a commit of another repository is signed by nobody whom the served commit names; "" if it is."""
        signers = self.vouching.who_may_sign(self.repo, self.tree(served))
        try:
            signer = self.vouching.verifier.signer(repo, commit.id, signers)
        except NotVerified as bad:
            return bad.why
        return "it is signed by this server's own key, which counts for nothing there" if signer.ours else ""

    def _problem(self, commit: CommitRef, text: str, hint: str) -> LayoutError:
        if self.command is not None:
            hint += f"; or, in an emergency, name the head that is to be served: {self.command('<head>')}"
        return LayoutError(self.branch, 0, 0, f"{commit:.12} {text}", hint)

    def tree(self, commit: CommitRef) -> str:
        """Its id, "" where the commit is not here."""
        return self.repo.commit(commit.id).tree if commit != NONE and self.repo.has(commit.id) else ""


def remembered(fleet: FleetRecord, config: FleetConfig) -> tuple[CommitRef, ...]:
    """FleetRecord.verified once the served commit is left for one that does not contain it."""
    if config.verification == UNSIGNED:
        return ()
    return tuple(dict.fromkeys((*fleet.verified, fleet.commit)))[-TIPS:]

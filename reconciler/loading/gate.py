"""Whether commits come in: signed by whom the fleet trusts, and touching only what whoever stands for them may touch.

Called by loader before a commit is taken, by overtaking for one that goes before the rest of another, by firstload for
the first one, and for what is pushed (commands/pushes). Nothing here judges content. What decides (modes, signers,
RBAC) is as it is served, never as the commit under judgement says.

A commit that is good once is good for ever: what was served is not asked again, however keys expire and signers go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from apiserver.model.commits import NONE, CommitRef, own
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import View
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import EVERY, UNSIGNED, FleetConfig
from reconciler.layout.reach import reach
from reconciler.loading.owners import (
    FREE,
    Admission,
    PushRights,
    admission,
    allowances,
    allowed,
    always,
    losses_allowed,
)
from reconciler.loading.vouching import KEYS, OPERATORS, Voucher, Vouching
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord
from reconciler.signatures.verifier import NotVerified
from reconciler.statusbranch.claim import TAKES_OVER

_MOST = 10_000
"""First-parent commits that are looked at for signatures."""
_LEAVE = "leave it out, or ask whoever administers the workspace for that right"
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
class Gate:
    """Of one repository. `branch`: its name, for messages; `command`: makes the command line that takes a head whatever
    stands against it."""

    repo: Repository
    vouching: Vouching
    branch: str
    command: Callable[[str], str] | None = None

    def has_to_know_who_moves(self, config: FleetConfig) -> bool:
        """Whether somebody has to stand for a branch that goes elsewhere. In a work tree on this machine whoever runs
        the server does."""
        return config.owners and not self.vouching.local

    def knows_nobody(self, config: FleetConfig, served: CommitRef) -> str:
        """Why whatever comes next will be held, in words, where nobody can be known to have pushed it; else ""."""
        vouching = self.vouching
        if not self.has_to_know_who_moves(config) or vouching.records.are_kept:
            return ""
        if vouching.who_may_sign(self.repo, self._tree(served)):
            return ""
        return (
            "spec.safety.owners asks who pushed a commit, which in this repository only a signature tells, and no "
            "signer is named: all that commits touch from now on is held. Name some in signers/ of the branch, or in "
            "keys/signers, or leave owners out"
        )

    def head(self, at: ComingCommit) -> tuple[LayoutError, ...]:
        """Why a head is not followed at all; asked once, before the first of its commits is taken."""
        if at.config.verification in (UNSIGNED, EVERY):
            return ()
        return self._unsigned(at.commit, self._tree(at.served), at)

    def first(self, head: CommitRef, config: FleetConfig) -> tuple[LayoutError, ...]:
        """The same of the first commit of all, of which nothing is trusted but the server's own list of signers. That
        there is one says that it counts, whatever the commit says of itself."""
        if config.verification == UNSIGNED and not self.vouching.keeps_a_list:
            return ()
        return self._unsigned(head, "", None)

    def recorded(self, status: CommitRef, source: CommitRef, config: FleetConfig) -> tuple[LayoutError, ...]:
        """The same of a commit that the status branch says was served: it was, where this server says so, and did not
        only take over what another said."""
        said = status
        while self.repo.commit(said.id).message.startswith(TAKES_OVER) and self.vouching.is_ours(self.repo, said):
            said = own(self.repo.commit(said.id).parents[0])
        return () if self.vouching.is_ours(self.repo, said) else self.first(source, config)

    def admit(
        self, view: View, at: ComingCommit, claims: Mapping[str, str], is_there: Callable[[str], bool] = always
    ) -> tuple[Voucher, Admission]:
        """Who stands for a commit, and what is to be made of it. `view`: of the store, as everything is served that
        comes before it; `is_there`: see PushRights. Raises NotThere."""
        if at.config.verification == EVERY:
            problems = self._chain_unsigned(at)
            if problems:
                return Voucher(), Admission(problems)
        pushes = self.vouching.pushes(at.served, [*at.skipped, at.commit, *at.later])
        voucher, found = self._voucher(at, at.commit, pushes), FREE
        for commit, before in at.way if at.config.owners else ():
            rights = PushRights(view, self._voucher(at, commit, pushes), is_there)
            one = self._one(rights, commit, before, claims)
            if one.whole and any(self._says_so(rights, at, commit, later, pushes) for later in at.after(commit)):
                one = replace(one, whole=())
            found = found.then(one) if found is not FREE else one
        return voucher, found

    def taken(self, view: View, at: ComingCommit) -> Admission:
        """What is to be made of a commit that whoever runs the server takes, whatever stands against it: it speaks for
        him."""
        found, rights = FREE, PushRights(view, OPERATORS)
        for commit, before in at.way:
            one = self._one(rights, commit, before, {})
            found = found.then(one) if found is not FREE else one
        return found

    def _one(self, rights: PushRights, commit: CommitRef, before: CommitRef, claims: Mapping[str, str]) -> Admission:
        found = FREE
        if not rights.voucher.is_free:
            touched = reach(self.repo, self._tree(before) or None, self._tree(commit), claims)
            found = admission(rights, commit, touched)
            found = found.then(losses_allowed(rights, self.repo, commit, before))
        said = allowed(self.repo, commit)
        allows = dict(allowances(rights, said)) if said else {}
        return replace(found, allows=allows) if allows else found

    def _says_so(
        self,
        rights: PushRights,
        at: ComingCommit,
        commit: CommitRef,
        later: CommitRef,
        pushes: dict[CommitRef, PushRecord],
    ) -> bool:
        """Whether a later commit, of somebody who may, allows what a commit touches outside of workspaces."""
        if str(commit) not in allowed(self.repo, later):
            return False
        return replace(rights, voucher=self._voucher(at, later, pushes), known={}).in_any(())

    def _voucher(self, at: ComingCommit, commit: CommitRef, pushes: dict[CommitRef, PushRecord]) -> Voucher:
        """A head that is verified alone speaks for all that comes with it."""
        head = at.later[-1] if at.later else at.commit
        whose = commit if at.config.verification in (UNSIGNED, EVERY) else head
        return self.vouching.voucher(self.repo, whose, self._tree(at.served), pushes.get(commit))

    def pushed(
        self, view: View, old: CommitRef, new: CommitRef, config: FleetConfig, fleet: FleetRecord
    ) -> tuple[LayoutError, ...]:
        """Why a push of `new` on top of `old` is not to be taken, before it is. `view`, `config`, `fleet`: what is
        served, which may lag behind `old`; what that brings counts from its load on."""
        chain = self.repo.first_parents(old.id, new.id) or [new.id]
        commits = [own(commit) for commit in chain]
        at = ComingCommit(new, old, config, (), tuple(commits[:-1]), fleet.verified)
        problems = self.head(at)
        if problems:
            return problems
        _, found = self.admit(view, at, fleet.claims)
        return (*found.whole, *(replace(each.trespass.error, hint=_LEAVE) for each in found.barred))

    # -- signatures

    def _chain_unsigned(self, at: ComingCommit) -> tuple[LayoutError, ...]:
        """Of all first-parent commits that were never served, the oldest first: each by those whom the one before it
        names, which was looked at by then."""
        chain = self._new(at)
        if chain is None:
            text = f"has more than {_MOST:,} commits that are not verified"
            return (self._problem(at.commit, text, "push them in parts"),)
        for commit in chain:
            parents = self.repo.commit(commit.id).parents
            trusted = self._tree(own(parents[0])) if parents else ""
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

    def _problem(self, commit: CommitRef, text: str, hint: str) -> LayoutError:
        if self.command is not None:
            hint += f"; or, in an emergency, name the head that is to be served: {self.command('<head>')}"
        return LayoutError(self.branch, 0, 0, f"{commit:.12} {text}", hint)

    def _tree(self, commit: CommitRef) -> str:
        return self.repo.commit(commit.id).tree if commit != NONE and self.repo.has(commit.id) else ""


def remembered(fleet: FleetRecord, config: FleetConfig) -> tuple[CommitRef, ...]:
    """FleetRecord.verified once the served commit is left for one that does not contain it."""
    if config.verification == UNSIGNED:
        return ()
    return tuple(dict.fromkeys((*fleet.verified, fleet.commit)))[-TIPS:]

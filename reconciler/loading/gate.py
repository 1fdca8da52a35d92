"""Whether commits come in: signed as they have to be (verification), and touching only what whoever stands for them may
touch (owners).

Called by entrance before a commit is taken, or goes before the rest of another, and for what is pushed
(commands/pushes, review/barring). Nothing here judges content. What decides (modes, signers, RBAC) is as it is served,
never as the commit under judgement says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from apiserver.model.commits import CommitRef, own
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import View
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import EVERY, UNSIGNED, FleetConfig
from reconciler.layout.reach import reach
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.owners import (
    PushRights,
    admission,
    allowances,
    allowed,
    always,
    losses_allowed,
    relied,
    relying,
)
from reconciler.loading.reliances import Reliances
from reconciler.loading.sources import Sources
from reconciler.loading.trees import Trees
from reconciler.loading.verification import ComingCommit, Verification
from reconciler.loading.vouching import OPERATORS, Voucher, Vouching
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord
from reconciler.repository.repositories import Repositories

_LEAVE = "leave it out, or ask whoever administers the workspace for that right"


@dataclass(frozen=True, slots=True)
class Gate:
    """Of one repository. `branch`: its name, for messages; `command`: makes the command line that takes a head whatever
    stands against it. `sources`, `trees`: what is known of the repository's files already."""

    repo: Repository
    vouching: Vouching
    branch: str
    command: Callable[[str], str] | None = None
    sources: Sources = field(default_factory=Sources)
    trees: Trees | None = None

    @property
    def verification(self) -> Verification:
        return Verification(self.repo, self.vouching, self.branch, self.command)

    def has_to_know_who_moves(self, config: FleetConfig) -> bool:
        """Whether somebody has to stand for a branch that goes elsewhere. In a work tree on this machine whoever runs
        the server does."""
        return config.owners and not self.vouching.local

    def knows_nobody(self, config: FleetConfig, served: CommitRef) -> str:
        """Why whatever comes next will be held, in words, where nobody can be known to have pushed it; else ""."""
        vouching = self.vouching
        if not self.has_to_know_who_moves(config) or vouching.records.are_kept:
            return ""
        if vouching.who_may_sign(self.repo, self.verification.tree(served)):
            return ""
        return (
            "spec.safety.owners asks who pushed a commit, which in this repository only a signature tells, and no "
            "signer is named: all that commits touch from now on is held. Name some in signers/ of the branch, or in "
            "keys/signers, or leave owners out"
        )

    def admit(
        self,
        view: View,
        at: ComingCommit,
        claims: Mapping[str, str],
        is_there: Callable[[str], bool] = always,
        *,
        push: bool = False,
    ) -> Admission:
        """What is to be made of a commit, by who stands for it. `view`: of the store, as everything is served that
        comes before it; `is_there`: see PushRights; `push`: nothing of it is taken yet, and all that matters is
        whether anything stands against it. Raises NotThere."""
        if at.config.verification == EVERY:
            problems = self.verification.chain(at)
            if problems:
                return Admission(problems)
        if not at.config.owners:
            return FREE
        pushes, found = self.vouching.pushes(at.served, [*at.skipped, at.commit, *at.later]), list[Admission]()
        for commit, before in at.way:
            rights = PushRights(view, self._voucher(at, commit, pushes), is_there)
            one = self._one(rights, commit, before, claims, push=push)
            if one.whole and any(self._says_so(rights, at, commit, later, pushes) for later in at.after(commit)):
                one = replace(one, whole=())
            found.append(one)
        return reduce(Admission.then, found)

    def taken(self, view: View, at: ComingCommit, claims: Mapping[str, str]) -> Admission:
        """What is to be made of a commit that whoever runs the server takes, whatever stands against it: it speaks for
        him."""
        rights = PushRights(view, OPERATORS)
        return reduce(Admission.then, (self._one(rights, commit, before, claims) for commit, before in at.way))

    def _one(
        self,
        rights: PushRights,
        commit: CommitRef,
        before: CommitRef,
        claims: Mapping[str, str],
        *,
        push: bool = False,
    ) -> Admission:
        found = FREE
        if not rights.voucher.is_free:
            touched = reach(self.repo, self.verification.tree(before) or None, self.verification.tree(commit), claims)
            found = admission(rights, commit, touched)
            found = found.beside(losses_allowed(rights, self.repo, commit, before))
        only = _looked_at(rights, push=push)
        if only is None or only:
            trees = self.trees or Trees(Repositories(self.repo))
            sides = trees.apart(before, claims), trees.apart(commit, claims)
            takes = Reliances(rights.view, rights.record, self.sources, *sides, push).find(only)
            found = found.beside(relied(rights, commit, takes))
        said = allowed(self.repo, commit)
        allows = dict(allowances(rights, said)) if said else {}
        return found.beside(Admission(allows=allows)) if allows else found

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
        head = self.verification.speaker(at.later[-1] if at.later else at.commit, at)
        whose = commit if at.config.verification in (UNSIGNED, EVERY) else head
        return self.vouching.voucher(self.repo, whose, self.verification.tree(at.served), pushes.get(commit))

    def pushed(
        self, view: View, old: CommitRef, new: CommitRef, config: FleetConfig, fleet: FleetRecord
    ) -> tuple[LayoutError, ...]:
        """Why a push of `new` on top of `old` is not to be taken, before it is. `view`, `config`, `fleet`: what is
        served, which may lag behind `old`; what that brings counts from its load on."""
        chain = self.repo.first_parents(old.id, new.id) or [new.id]
        commits = [own(commit) for commit in chain]
        at = ComingCommit(new, old, config, (), tuple(commits[:-1]), fleet.verified)
        problems = self.verification.head(at)
        if problems:
            return problems
        found = self.admit(view, at, fleet.claims, push=True)
        return (*found.whole, *(replace(each.trespass.error, hint=_LEAVE) for each in found.barred))


def _looked_at(rights: PushRights, *, push: bool) -> frozenset[str] | None:
    """The workspaces of which it matters what they are to take; None: all. Whoever may push to root may have anything
    taken, so of him it does where that is held by now. A push of nobody's may not be made whatever it has taken."""
    if rights.in_any(()):
        return frozenset() if push else relying(rights.view)
    return frozenset() if push and rights.voucher.user is None else None

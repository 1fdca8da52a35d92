"""What a loader takes of its branch: along which commits a head is followed, and what each of them may touch.

Called by loader for every head and each of its commits, and by overtaking for those that go before others. Whether a
branch may go elsewhere is heads' to say, who stands for what gate's. All of it is as the served commit says; where
nobody vouches for anything (`BranchSettings.vouching`) every commit may touch all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from apiserver.model.commits import CommitRef, own
from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import UNSIGNED, FleetConfig
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.gate import Gate
from reconciler.loading.heads import BranchSettings, Route, route
from reconciler.loading.owners import NotThere, PushRights
from reconciler.loading.sources import Sources
from reconciler.loading.sourcevoucher import voucher
from reconciler.loading.trees import Trees
from reconciler.loading.verification import ComingCommit, remembered
from reconciler.loading.vouching import Voucher
from reconciler.loading.whole import Whole
from reconciler.repository.objects import Repository


class Entrance:
    """Of one loader. `gate`: None where every commit may touch all."""

    def __init__(self, store: Store, whole: Whole, branch: BranchSettings, sources: Sources, trees: Trees) -> None:
        self._store, self._repo, self._whole, self._branch = store, trees.repositories.own, whole, branch
        vouching = branch.vouching
        gate = partial(Gate, self._repo, branch=branch.name, command=branch.command, sources=sources, trees=trees)
        self.gate = gate(vouching=vouching) if vouching is not None else None

    def route(self, fleet: FleetRecord, head: CommitRef) -> Route:
        """How the head is reached, or why nothing of it is taken. What it leaves behind is kept first."""
        config = self._served(fleet)
        known = self.gate is not None and self.gate.has_to_know_who_moves(config)
        found = route(self._repo, self._branch, config.rewrites, fleet.commit, head, known=known)
        if found.leaves:
            self._branch.keep(fleet.commit.id, head.id)
        if not found.commits and fleet.error:
            self._whole.note(replace(fleet, error=""))  # the branch is back where it was
        if found.problems or self.gate is None or not found.commits or self._branch.takes(head):
            return found
        return found._replace(problems=self._unread(fleet) or self.gate.verification.head(self._coming(fleet, head)))

    def leave(self, fleet: FleetRecord, head: CommitRef) -> FleetRecord:
        """The branch goes elsewhere: what was good is good when it comes back."""
        verified = remembered(fleet, self._served(fleet)) if self.gate is not None else ()
        verified = tuple(c for c in verified if self._repo.has(c.id) and not self._repo.is_ancestor(c.id, head.id))
        fleet = replace(fleet, verified=verified)
        self._whole.note(fleet)
        return fleet

    def admission(
        self, fleet: FleetRecord, commit: CommitRef, then: Sequence[CommitRef], skipped: Sequence[CommitRef]
    ) -> Admission:
        """What is to be made of a commit, by who stands for it. Of one that came halfway that is known. `then`: what
        comes after it; `skipped`: what lies between what is served and it, and could not be taken."""
        if self.gate is None or commit == fleet.commit:
            return FREE
        coming = self._coming(fleet, commit, tuple(then), tuple(skipped))
        if self._branch.takes(then[-1] if then else commit):
            return self.gate.taken(self._store, coming, fleet.claims)
        known = fleet.admitted.get(str(commit))
        return Admission.from_json(known) if known is not None else self.gate.admit(self._store, coming, fleet.claims)

    def ahead(self, fleet: FleetRecord, commit: CommitRef, earlier: Callable[[str], bool]) -> Admission | None:
        """Of a commit that is to go before others: what is noted of it; None where its turn has to be waited for.
        `earlier` takes a workspace past the commits before: their RBAC is as it will be then."""
        if self.gate is None:
            return FREE
        coming = self._coming(fleet, commit)
        try:
            found = self.gate.admit(self._store, coming, fleet.claims, earlier)
        except NotThere:
            return None
        return found if found.is_plain and not self.gate.verification.head(coming) else None

    def unsigned(self, fleet: FleetRecord, repo: Repository, commit: CommitRef) -> str:
        """Why a commit of a tenant's repository is not taken where commits have to be signed; "" where it is. Who may
        sign the fleet's served commit says, and this server's own key counts for nothing there."""
        if self.gate is None or self._served(fleet).verification == UNSIGNED:
            return ""
        return self.gate.verification.unsigned(repo, commit, fleet.commit)

    def source_rights(self, fleet: FleetRecord, record: WorkspaceRecord) -> PushRights | None:
        """Of who stands for what comes from a workspace's source; None where nobody is asked."""
        gate = self.gate
        if gate is None or not self._served(fleet).owners:
            return None

        def known(commit: CommitRef) -> Voucher:
            if not self._repo.has(commit.id):
                return Voucher(why=f"{commit:.10}, which says its spec.source, is not here")
            parents = self._repo.commit(commit.id).parents
            push = gate.vouching.pushes(own(parents[0]), [commit]).get(commit) if parents else None
            return gate.vouching.voucher(self._repo, commit, gate.verification.tree(fleet.commit), push)

        return PushRights(self._store, voucher(self._store, record, known))

    def knows_nobody(self) -> str:
        """See Gate."""
        fleet = tree.fleet(self._store)
        if self.gate is None or not fleet.commit:
            return ""
        return self.gate.knows_nobody(self._served(fleet), fleet.commit)

    def _coming(
        self,
        fleet: FleetRecord,
        commit: CommitRef,
        later: tuple[CommitRef, ...] = (),
        skipped: tuple[CommitRef, ...] = (),
    ) -> ComingCommit:
        return ComingCommit(commit, fleet.commit, self._served(fleet), later, skipped, fleet.verified)

    def _served(self, fleet: FleetRecord) -> FleetConfig:
        """The defaults where it cannot be read, for what does not depend on who may push."""
        config = self._whole.config(fleet.commit)[0] if self._repo.has(fleet.commit.id) else None
        return config or FleetConfig("")

    def _unread(self, fleet: FleetRecord) -> tuple[LayoutError, ...]:
        """Why it cannot be known who may push: a served treeplane.yaml that says so may be one that this version cannot
        read."""
        if self._branch.vouching is None or self._branch.vouching.local:
            return ()
        hint = f"start with another version of treeplane, or with: {self._branch.command('<head>')}"
        if not self._repo.has(fleet.commit.id):
            text = f"{fleet.commit:.12}, which is served, is not here, and so it is not known who may push"
            return (LayoutError(self._branch.name, 0, 0, text, hint),)
        config, problems = self._whole.config(fleet.commit)
        text = "cannot be read as it is served, and so it is not known who may push"
        unread = problems if config is None else ()
        return tuple(LayoutError(e.path, e.line, e.column, f"{text}: {e.message}", hint) for e in unread)

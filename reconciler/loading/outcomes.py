"""Notes what became of each commit, for whoever is told of it outside: a forge, a webhook.

Called by the holder (commands/holder), in the thread that loads, with what a load came to. It writes one object for a
commit (Internal.OUTCOME), which controllers follow and tell further in threads of their own; nothing here waits for
them. The last commits alone are kept.

What a commit changed is what the load says, and of several commits in one load each workspace's record says which one
it was. Where a crash came between a load and its note, records say all: `noted` is the commit that was got to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Internal
from apiserver.model.tables import Table
from apiserver.registry import announced, tree
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Change, Compacted, Delete, DeleteRow, Op, Put, Store
from reconciler.loading.changeset import ChangeKind, ChangeSet, together
from reconciler.loading.loader import Loaded
from reconciler.plan.outcome import CommitOutcome, OutcomeTally, WorkspaceOutcome, outcome, told_errors, turned
from reconciler.plan.system import COMPUTE
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.statusbranch import pushers

KEPT = 64
"""Outcomes in the store: what was not told of more is not told any more."""
_TOGETHER = 20
"""Commits of one load that are told of, the last ones."""
_PAGE = 1000


class Outcomes:
    """Of one run of the holder. `wanted`: whether anybody is told; else it does nothing."""

    def __init__(self, store: Store, repo: Repository, branch: str, *, wanted: bool) -> None:
        self._store, self._repo, self._branch, self._wanted = store, repo, branch, wanted
        self._since = ""
        """The commit up to which all is noted; "" where the fleet was never served."""
        self._missed = False
        """Whether something was loaded of which nothing was noted."""
        self._recovers = False
        """Whether the next load brings back what was there before."""
        self._mark = 0

    def begin(self, recorded: CommitRef, *, others: bool = False) -> None:
        """Before the first load. `recorded`: where the fleet is recovered from, if it is. `others`: another server held
        it meanwhile: what that loaded is not told now, nor what came while nobody was to be told."""
        fleet = tree.fleet(self._store)
        if not self._wanted or others:
            self._forget()
        if not self._wanted:
            return
        noted = announced.noted(self._store)
        if fleet.loaded:
            self._since = noted or fleet.commit.id
            self._missed = bool(fleet.arriving) or self._since != fleet.commit.id
        else:
            self._since = recorded.id
            self._recovers = bool(recorded)
            self._missed = not recorded and tree.count(self._store) > 0

    def loaded(self, loaded: Loaded) -> None:
        """A load has ended, or those commits have that overtook one."""
        if not self._wanted:
            return
        fleet = tree.fleet(self._store)
        settled = fleet.commit == loaded.head or bool(loaded.problems) or not fleet.arriving
        if not settled and loaded.waits_for:
            return  # the rest of it comes with what it waits for
        until = fleet.commit.id if settled else loaded.head.id
        chain = self._chain(until)
        found = self._found(fleet, chain, together(loaded.steps))
        if settled:
            some = {commit: found[commit] for commit in chain if found[commit].counts or commit == until}
        else:
            some = {commit: found[commit] for commit in chain if commit == until}
        new = [said.of(self._blank(fleet, commit)) for commit, said in some.items()]
        if loaded.problems:
            new.append(replace(self._blank(fleet, loaded.head.id), problems=told_errors(loaded.problems)))
        if settled:
            self._since, self._missed, self._recovers = until, False, False
        self._write(new, noted=until if settled else "")

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Within it commits are made of writes, which `made` is told."""
        self._mark = self._store.revision()
        yield

    def made(self, commit: str) -> None:
        """A commit was made of writes, and they are there: which workspaces they changed, the log knows."""
        if not self._wanted:
            return
        try:
            changes = self._store.changes(self._mark)
        except Compacted:
            changes = []
        self._mark = self._store.revision()
        fleet, said = tree.fleet(self._store), [*self._written(changes, commit)]
        if not fleet.arriving:
            self._since = commit
        self._write([outcome(self._blank(fleet, commit), said)], noted=self._since)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within it workspaces are judged again, which no commit is the reason for. Who is held by that, or is not any
        more, is told of the commit that it was judged at."""
        before = tree.held(self._store) if self._wanted else {}
        yield
        after = tree.held(self._store) if self._wanted else {}
        turned_now = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        new: dict[str, CommitOutcome] = {}
        for path in sorted(turned_now):
            record = tree.workspace_at(self._store, path)
            if record is not None and record.past:
                became = ChangeKind.HELD if record.errors else ChangeKind.CONFIGURED
                now = _said(record, became, mended=not record.errors)
                at = new.get(record.past.id) or self._known(record.past.id)
                new[record.past.id] = turned(at, now)
        self._write(new.values())

    # -- what is so

    def _found(self, fleet: FleetRecord, chain: list[str], changes: ChangeSet) -> dict[str, OutcomeTally]:
        """What became of workspaces, by commit of the chain."""
        found = {commit: OutcomeTally() for commit in chain}
        if not chain:
            return found
        became = changes.became.items()
        touched: dict[str, ChangeKind] = {path: kind for path, kind in became if kind is not ChangeKind.UNCHANGED}
        mended = set(changes.mended)
        touched |= dict.fromkeys(mended - touched.keys(), ChangeKind.CONFIGURED)
        if touched.get(COMPUTE) is not ChangeKind.HELD:
            touched.pop(COMPUTE, None)  # it ships, and no commit says anything of it
        touched |= dict.fromkeys(changes.held, ChangeKind.HELD)
        if self._missed:
            touched = {**self._of_records(found), **touched}
        single = len(chain) == 1 and not (self._missed or self._recovers or fleet.arriving)
        for path, kind in touched.items():
            if single:
                errors = told_errors(changes.held.get(path, ())) if kind is ChangeKind.HELD else ()
                found[chain[0]].add(WorkspaceOutcome(path, kind, path in mended, errors))
                continue
            record = tree.workspace_at(self._store, path)
            if record is None:
                found[chain[-1]].add(WorkspaceOutcome(path, ChangeKind.DELETED))
            elif record.past.id in found:
                found[record.past.id].add(_said(record, kind, mended=path in mended))
        return found

    def _of_records(self, chain: Iterable[str]) -> dict[str, ChangeKind]:
        """All workspaces that are at one of the commits. Reads all records: after a crash alone."""
        among, found = set(chain), {}
        for row in rows(self._store, Table.WORKSPACES):
            record = WorkspaceRecord.decode(*row)
            if record.past.id in among:
                found[record.path] = ChangeKind.CREATED
        return found

    def _written(self, changes: Iterable[Change], commit: str) -> Iterator[WorkspaceOutcome]:
        clusters: set[str] = set()
        for change in changes:
            if change.key.resource == Internal.WORKSPACE and change.value is None and change.previous is not None:
                yield WorkspaceOutcome(tree.path_of(change.previous), ChangeKind.DELETED)
            elif change.key.cluster:
                clusters.add(change.key.cluster)
        for cluster in sorted(clusters):
            record = tree.workspace_of(self._store, cluster)
            if record is not None and record.past.id == commit:
                yield _said(record, ChangeKind.CREATED)

    def _chain(self, until: str) -> list[str]:
        """The commits that were taken since, oldest first: the last of them. One that is taken in one difference, since
        the branch was rewritten, stands alone."""
        if not until or until == self._since:
            return [until] if until and self._missed else []
        try:
            chain = self._repo.first_parents(self._since, until) if self._since else None
        except RepositoryError:
            chain = None
        return (chain or [until])[-_TOGETHER:]

    # -- what is written

    def _blank(self, fleet: FleetRecord, commit: str) -> CommitOutcome:
        by = pushers.of(self._store, commit)
        return CommitOutcome(commit, fleet.fleet, self._branch, pushed_by=by)

    def _known(self, commit: str) -> CommitOutcome:
        found = self._store.get(announced.outcome_key(commit))
        if found is not None:
            return CommitOutcome.decode(found.value)
        return replace(self._blank(tree.fleet(self._store), commit), partial=True)

    def _write(self, new: Iterable[CommitOutcome], noted: str = "") -> None:
        ops: list[Op] = []
        for each in new:
            key, value = announced.outcome_key(each.commit), each.encode()
            there = self._store.get(key)
            if there is None or (there.value != value and (each.workspaces or each.problems)):
                ops.append(Put(key, value))
        if ops:
            ops += self._too_many(len(ops))
        if noted and noted != announced.noted(self._store):
            ops.append(announced.put_noted(noted))
        if ops:
            self._store.write(*ops).result()

    def _too_many(self, new: int) -> Iterator[Op]:
        there = sorted(self._store.scan(Internal.OUTCOME, count=False).records, key=lambda record: record.revision)
        for record in there[: max(0, len(there) + new - KEPT)]:
            yield Delete(record.key, record.revision)
            yield from announced.untold(self._store, record.key.name)

    def _forget(self) -> None:
        ops: list[Op] = [Delete(r.key) for r in self._store.scan(Internal.OUTCOME, count=False).records]
        ops += [DeleteRow(Table.OUTCOMES, row.key) for row in self._store.scan_rows(Table.OUTCOMES)]
        if ops:
            self._store.write(*ops).result()


def _said(record: WorkspaceRecord, kind: ChangeKind, *, mended: bool = False) -> WorkspaceOutcome:
    """`kind`: what became of it in all, which may be more than at the commit that it is at."""
    if record.errors:
        return WorkspaceOutcome(record.path, ChangeKind.HELD, errors=told_errors(record.errors))
    came = record.origin == record.past
    became = ChangeKind.CONFIGURED if kind is ChangeKind.HELD or (kind is ChangeKind.CREATED and not came) else kind
    return WorkspaceOutcome(record.path, became, mended)

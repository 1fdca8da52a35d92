"""Has the workspaces that tenants' repositories have below their workspaces follow those repositories.

Called by loader behind each load. A workspace with a source is judged first, and by which head of the source it was is
known then (`Site.heads`), be its content good or not. The workspaces below it there follow that head in a step of their
own, at the commit of the fleet that is served: one difference of the fleet's tree with what the repository had, and
with what it has (layout/grafts). Which commit says what workspaces there are is the fleet's (`FleetRecord.grafts`) when
that step is done, and the workspace says how far that is (`GRAFTED`): after a crash in between it is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from apiserver.model import commits, paths
from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import codec, tree
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.storage.protocol import Store, View
from reconciler.layout.compare import touched
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.grafts import OF
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading import feeds
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.site import SeenHead
from reconciler.loading.sourced import GRAFTED
from reconciler.loading.sources import Sources
from reconciler.loading.trees import Trees
from reconciler.loading.whole import Whole

Said = dict[str, dict[str, str]]
TakeStep = Callable[[FleetRecord, WorkspaceTree, WorkspaceTree, Collection[str]], ChangeSet]
"""From one tree to another, at the served commit, with workspaces to judge whatever differs."""


@dataclass(frozen=True, slots=True)
class Grafting:
    """`heads`: by which head of its source each workspace was judged that was; emptied by `follow`."""

    store: Store
    trees: Trees
    sources: Sources
    whole: Whole
    heads: dict[str, SeenHead]

    def follow(self, take: TakeStep) -> ChangeSet | None:
        """None where there is nothing to do."""
        heads = {**self.heads}
        self.heads.clear()
        news = {r.cluster: (r, heads[path]) for path in heads if (r := self._lags(path, heads[path])) is not None}
        if not news:
            return None
        step = self.finish(take)
        fleet = tree.fleet(self.store)
        after = self._after(fleet, news)
        if after != fleet.grafts:
            next_step = self._taken(fleet, after, take)
            step = step.then(next_step) if step is not None else next_step
        for record, head in news.values():
            self._note(record.path, str(head.commit))
        return step

    def finish(self, take: TakeStep) -> ChangeSet | None:
        """Takes a step to its end that was cut off: before anything else, since what it brought already is in no
        difference of what comes next. None where there is none."""
        fleet = tree.fleet(self.store)
        if not fleet.regrafting:
            return None
        there = {of: each for of, each in fleet.regrafting.items() if tree.workspace_of(self.store, of) is not None}
        return self._taken(fleet, self.moved(there), take)

    def _taken(self, fleet: FleetRecord, after: Said, take: TakeStep) -> ChangeSet:
        """The step to what workspaces there are then. That it is on its way is written first (see `finish`)."""
        self.whole.note(replace(fleet, regrafting=after))
        self.trees.stand(fleet)
        before, here = self.trees.at(fleet.commit), self.trees.at(fleet.commit, None, self.trees.grafted(after))
        step = take(fleet, here, before, self._also(fleet, after))
        fleet = tree.fleet(self.store)
        fleet = replace(fleet, kept=step.kept, claims=self.whole.claims(here, step.kept), regrafting={})
        self.whole.note(replace(fleet, grafts=self.remaining(fleet, after)))
        return step

    def carried(self, commit: CommitRef) -> None:
        """Where a commit has workspaces with sources elsewhere, those below them there go along: whether they do move,
        the step finds out. Cost follows what moves."""
        self.trees.settle()
        standing = [*self.trees.grafts.by_directory.values()]
        here = self.trees.at(commit).plain if standing else None
        gone = [each for each in standing if here is not None and here.at(each.directory) is None]
        if here is None or not gone:
            return
        found = touched(here, self.trees.at(tree.fleet(self.store).commit).plain)
        stated: dict[str, WorkspaceDir] = {}
        for path in found.appeared:
            place = found.places.get(path) or here.find(path)
            uid = self.sources.stated_uid(here, place) if place is not None else ""
            if place is not None and uid:
                stated[uid] = place
        places = {each.said[OF]: self._place(each.said[OF], here, stated, found.appeared) for each in gone}
        self.trees.carry(commit, {of: place for of, place in places.items() if place})

    def _place(
        self, of: str, here: WorkspaceTree, stated: Mapping[str, WorkspaceDir], appeared: Collection[str]
    ) -> str:
        """The directory in which a workspace stands that moves, or one above it does; "" where none is known."""
        record = tree.workspace_of(self.store, of)
        above, below = record, ""
        while record is not None and above is not None and above.parent:
            uid = self._uid(above)
            back = str(tree.summary(self.store, above.path).get("first", ""))
            place = stated.get(uid) or (here.find(back) if back and back in appeared else None)
            if place is not None:
                return place.directory + below
            below = record.directory.removeprefix((tree.workspace_at(self.store, above.parent) or above).directory)
            above = tree.workspace_at(self.store, above.parent)
        stands = here.at(record.directory) if record is not None and record.directory else None
        return stands.directory if stands is not None and record is not None and stands.path == record.path else ""

    def _uid(self, record: WorkspaceRecord) -> str:
        parent = tree.workspace_at(self.store, record.parent)
        found = self.store.get(Key(WORKSPACES, parent.cluster, "", paths.base(record.path))) if parent else None
        return codec.uid_of(found.value) if found is not None else ""

    def moved(self, said: Mapping[str, dict[str, str]]) -> Said:
        """What is recorded, with where the workspaces stand by now."""
        records = {of: tree.workspace_of(self.store, of) for of in said}
        places = {of: record.directory for of, record in records.items() if record is not None and record.directory}
        return {of: {**each, "directory": places.get(of, each["directory"])} for of, each in said.items()}

    def remaining(self, fleet: FleetRecord, said: Mapping[str, dict[str, str]]) -> Said:
        """Of what is recorded, what means something still: where the fleet's tree has the workspace with a source which
        has others below it, and where something stays that was there."""
        here = self.trees.at(fleet.commit, None, self.trees.grafted(said))
        kept, out = [*fleet.kept], Said()
        for of, each in said.items():
            record = tree.workspace_of(self.store, of)
            if record is None:
                continue
            stays = any(paths.is_within(top, record.path) or paths.is_within(record.path, top) for top in kept)
            graft, inside = here.graft_at(each["directory"]), f"{each['directory']}/"
            there = graft.tree if graft is not None else None
            found = there.content(record.path, each.get("path", "")) if there is not None else None
            has = there is not None and found is not None and next(there.nested(found), None) is not None
            unknown = graft is not None and there is None
            if stays or has or unknown or any(directory.startswith(inside) for directory in fleet.claims):
                out[of] = each
        return out

    def below(self, path: str) -> set[str]:
        """The workspaces in the source of the one at `path` that are held, or are not back yet: they may wait for
        something that its source, or whoever looks at it, knows by now."""
        record = tree.workspace_at(self.store, path)
        found = inherited(self.store, record.cluster) if record is not None and record.follows else ()
        return {each.path for each in found if each.errors or not each.served}

    def _lags(self, path: str, head: SeenHead) -> WorkspaceRecord | None:
        record = tree.workspace_at(self.store, path)
        if record is None or record.leaves or record.follows.get(GRAFTED) == str(head.commit):
            return None
        return record

    def _after(self, fleet: FleetRecord, news: Mapping[str, tuple[WorkspaceRecord, SeenHead]]) -> Said:
        after = {of: dict(said) for of, said in fleet.grafts.items()}
        for of, (record, head) in news.items():
            if of in after or self.sources.has_workspaces(head.content):
                after[of] = {**head.ref.as_kept(), "directory": record.directory, "commit": str(head.commit)}
        return after

    def _also(self, fleet: FleetRecord, after: Said) -> set[str]:
        """Those that are held, since what is allowed may be said by now; those that have something rendered that is
        not their own, and differs; and all where the repository is another one, or does not contain what it was at."""
        out = set[str]()
        for of, said in after.items():
            was, record = fleet.grafts.get(of), tree.workspace_of(self.store, of)
            if was == said or was is None or record is None:
                continue
            follows = self._follows(commits.parse(was["commit"]), commits.parse(said["commit"]))
            same = follows and was.get("path") == said.get("path")
            here = self.trees.at(fleet.commit, None, self.trees.grafted(after))
            before, now = (self.trees.graft({**at, OF: of}).tree for at in (was, said))
            for each in inherited(self.store, record.cluster):
                fed = before is not None and now is not None and self._is_fed(each, before, now, said)
                if (each.errors or fed or not same) and here.find(each.path, each.directory) is not None:
                    out.add(each.path)
        return out

    def _is_fed(self, record: WorkspaceRecord, was: ContentTree, now: ContentTree, said: Mapping[str, str]) -> bool:
        return feeds.differs_there(self.store, record.cluster, was, now, said.get("path", ""))

    def _follows(self, was: CommitRef, now: CommitRef) -> bool:
        repo = self.trees.repositories.of(now)
        return was.repository == now.repository and repo.has(was.id) and repo.is_ancestor(was.id, now.id)

    def _note(self, path: str, commit: str) -> None:
        record = tree.workspace_at(self.store, path)
        if record is not None and record.follows and record.follows.get(GRAFTED) != commit:
            summary = tree.summary(self.store, path)
            record = replace(record, follows={**record.follows, GRAFTED: commit})
            self.store.write(tree.put_workspace(record, summary)).result()


def directories(store: Store) -> Callable[[str, str, str], Iterable[str]]:
    """See Trees.known, by what the store has."""

    def known(cluster: str, _directory: str, repository: str) -> Iterator[str]:
        record = tree.workspace_of(store, cluster)
        for each in inherited(store, record.cluster) if record is not None else ():
            content = commits.parse(tree.summary(store, each.path).get("content") or "")
            if not content or content.repository == repository:
                yield each.directory

    return known


def inherited(store: View, cluster: str) -> Iterator[WorkspaceRecord]:
    """The workspaces that stand in the source of another one, by its logical cluster."""
    above = tree.workspace_of(store, cluster)
    for path in tree.below(store, above.path) if above is not None else ():
        record = tree.workspace_at(store, path)
        if record is not None and cluster in (record.follows.get(OF), record.source.get(OF)):
            yield record

"""What a change would do, found by doing it: to a store that is thrown away, which holds the workspaces it concerns.

Called by `treeplane diff`. The store is loaded as the status branch says that they are served (or, where nothing is
recorded, from the first commit), and goes to the second commit in one step, with the loader and the placement that a
server has. What that wrote is what the change does; nobody is asked, and nothing is written elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.storagenames import TYPES
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.part import Part
from reconciler.loading.changeset import ChangeSet, together
from reconciler.loading.identities import Identities
from reconciler.loading.inpart import Everybody, Heard, judged
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.trees import Trees
from reconciler.plan.deletions import ALLOW
from reconciler.plan.system import shipped_workspaces
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository import trailers
from reconciler.repository.repositories import Repositories
from reconciler.review import copies
from reconciler.review.concerned import OFFERING, PLACING, Offering, WhomItConcerns, offers
from reconciler.review.ends import Ends
from reconciler.review.objects import Versions, present, where, written
from reconciler.review.places import PlacedNamespaces, placed
from reconciler.review.result import TargetDifference


@dataclass(frozen=True, slots=True)
class Foreseen:
    """`found`: what becomes of workspaces; `problems`: why nothing of it is taken. `pairs`: every object that is
    another; `before`, `after`: paths by logical cluster. `placed`: what runs where, then and now. `said`: hashes of
    deletions that its commits allow. `touched`: paths of workspaces whose files differ; `held_before`: those that were
    held, and why. `whole`: everybody was judged. `nothing_before`: why nothing of the first commit can be served."""

    found: ChangeSet = field(default_factory=ChangeSet)
    problems: tuple[LayoutError, ...] = ()
    pairs: Mapping[Key, Versions] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)
    placed: tuple[PlacedNamespaces, PlacedNamespaces] = (PlacedNamespaces(), PlacedNamespaces())
    targets: tuple[TargetDifference, ...] = ()
    said: frozenset[str] = frozenset()
    touched: frozenset[str] = frozenset()
    held_before: Mapping[str, list[str]] = field(default_factory=dict)
    whole: bool = False
    nothing_before: tuple[LayoutError, ...] = ()


def foresee(ends: Ends, scratch: Path, renders: Renders = NOWHERE) -> Foreseen:
    """`renders`: for directories that are rendered. Raises RepositoryError."""
    return _Foresight(ends, scratch, renders).run()


class _Foresight:
    def __init__(self, ends: Ends, scratch: Path, renders: Renders) -> None:
        self._ends, self._scratch, self._renders = ends, scratch, renders
        self._repositories, self._numbers = Repositories(ends.repo), count()
        trees = Trees(self._repositories)
        if ends.recorded is not None:
            trees.claims = ends.recorded.facts().claims
        self._concerned = WhomItConcerns(ends.repo, trees.at(ends.base.commit), trees.at(ends.target.commit))
        self._said = frozenset(trailers.said(ends.repo, ends.target.commit.id, ends.base.commit.id, ALLOW))
        self._touched: frozenset[str] = frozenset()
        self._provided = Offering()
        self._whole = False
        self._nothing_of_base: tuple[LayoutError, ...] = ()
        self._last = Foreseen()

    def run(self) -> Foreseen:
        if self._ends.base.commit == self._ends.target.commit:
            return self._last
        try:
            self._touched = self._concerned.touched()
        except BadFile as bad:
            return Foreseen(problems=tuple(bad.errors), said=self._said)
        try:
            part = Part("", {*self._touched, *shipped_workspaces()})
            judged(self._repositories, self._ends.recorded, part, self._load, self._further)
            return self._last
        except Everybody:
            self._whole = True
            self._load(Trees(self._repositories), Heard())
            return replace(self._last, whole=True)

    def _further(self, heard: Heard, _: ChangeSet) -> Iterator[str]:
        yield from self._concerned.further(heard, self._last.found, self._provided, self._ends.recorded)

    def _load(self, trees: Trees, heard: Heard) -> Loaded:
        store = open_at(self._scratch / f"store{next(self._numbers)}", sync=False)
        try:
            return self._step(heard.in_(store), trees, heard)
        finally:
            store.close()

    def _step(self, store: Store, trees: Trees, heard: Heard) -> Loaded:
        ends = self._ends
        identities = Identities(self._scratch / "identities")
        loader = Loader(store, self._repositories, identities, lambda _: (), trees=trees, renders=self._renders)
        loader.steppers.guesses = ends.recorded is None
        begun = self._begin(loader, ends.base.commit)
        if begun.problems:
            return self._anew(store, loader, begun.problems)
        revision, before = store.revision(), where(store)
        offered, then, held = self._offering(store, before), placed(store, before), tree.held(store)
        heard.forget_others()
        loaded = loader.take(ends.target.commit)
        after, pairs = where(store), written(store, revision)
        now = placed(store, after)
        clusters = {**before, **after}
        changed = {clusters.get(key.cluster, "") for key in pairs if key.resource in OFFERING}
        placing = {path for cluster, path in clusters.items() if path in self._touched and _places(store, cluster)}
        placing |= {clusters.get(key.cluster, "") for key in pairs if key.resource in PLACING}
        types = {key.name for key in pairs if key.resource == TYPES}
        self._provided = Offering(types, offered | changed, self._touched, placing, self._said)
        self._last = Foreseen(
            found=together(loaded.steps),
            problems=loaded.problems,
            pairs=pairs,
            before=before,
            after=after,
            placed=(then, now),
            targets=tuple(copies.differences(store, pairs, copies.PlacedSides(then, now), clusters)),
            said=self._said,
            touched=self._touched,
            held_before=held,
            nothing_before=self._nothing_of_base,
        )
        return loaded

    def _anew(self, store: Store, loader: Loader, why: tuple[LayoutError, ...]) -> Loaded:
        """Nothing was served that the change could take away or leave as it is. Raises Everybody."""
        if not self._whole:
            raise Everybody
        loaded = loader.load(self._ends.target.commit)
        after = where(store)
        self._last = Foreseen(
            found=together(loaded.steps),
            problems=loaded.problems,
            pairs=present(store, after),
            after=after,
            said=self._said,
            touched=self._touched,
            nothing_before=why,
        )
        return loaded

    def _begin(self, loader: Loader, base: CommitRef) -> Loaded:
        recorded = self._ends.recorded
        if recorded is None:
            return loader.load(base)
        begun = loader.begin(base, recorded)
        if not begun.problems and recorded.source != base:
            # Where nothing of it is taken, what is served before it stays.
            self._nothing_of_base = loader.take(base).problems
        return begun

    def _offering(self, store: Store, paths: Mapping[str, str]) -> set[str]:
        """Workspaces that others may have something of."""
        return {path for cluster, path in paths.items() if offers(store, cluster)}


def _places(store: Store, cluster: str) -> bool:
    return any(store.count(resource, cluster) for resource in PLACING)

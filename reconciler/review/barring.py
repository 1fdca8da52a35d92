"""Whether a push may be made, where no store has what is served: gate is asked in one that is thrown away.

Called by `treeplane hook`. Gate is asked in an empty store at first: where no rights decide that is all. Otherwise the
workspaces that it looked for are loaded as the status branch says that they are served, and it is asked again, until it
has seen all that its answer follows from. So that costs what is touched and what is above it. Where much is touched,
root is loaded alone at first, since whoever may push there may push anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from apiserver.model.paths import ROOT
from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import FleetConfig
from reconciler.layout.part import Part
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.gate import Gate
from reconciler.loading.identities import Identities
from reconciler.loading.inpart import Everybody, Heard, judged
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.trees import Trees
from reconciler.plan.deletions import ALLOW
from reconciler.plan.system import shipped_workspaces
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository import trailers
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.repositories import Repositories
from reconciler.review.concerned import held_for
from reconciler.review.ends import Ends
from reconciler.statusbranch.recorded import RecordedFleet


def barred(
    ends: Ends,
    recorded: RecordedFleet,
    gate: Gate,
    config: FleetConfig,
    scratch: Path,
    renders: Renders = NOWHERE,
) -> tuple[LayoutError, ...]:
    """Why a push from `ends.base` to `ends.target` is not to be taken, as gate has it. `recorded`: what is served, of
    whatever commit; `config`: what the fleet says there; `renders`: for directories that are rendered. Raises
    RepositoryError, also where what is served cannot be had."""
    return _Barring(ends, recorded, gate, config, scratch, renders).run()


_FEW = 16
"""Workspaces that are loaded with root, whether they turn out to be needed or not."""


class _Barring:
    def __init__(
        self, ends: Ends, recorded: RecordedFleet, gate: Gate, config: FleetConfig, scratch: Path, renders: Renders
    ) -> None:
        self._renders = renders
        self._ends, self._recorded, self._gate, self._config = ends, recorded, gate, config
        self._scratch, self._numbers = scratch, count()
        self._repositories = Repositories(ends.repo)
        self._found: tuple[LayoutError, ...] = ()

    def run(self) -> tuple[LayoutError, ...]:
        heard = self._heard_at_first()
        if not heard.paths and not heard.held:
            return self._found
        some = heard.paths if len(heard.paths) <= _FEW else ()
        part = Part("", {ROOT, *shipped_workspaces(), *some})
        try:
            judged(self._repositories, self._recorded, part, self._load, self._further)
        except Everybody:
            self._load(Trees(self._repositories), Heard())
        return self._found

    def _heard_at_first(self) -> Heard:
        """What the answer may follow from."""
        facts, heard, store = self._recorded.facts(), Heard(), self._open()
        try:
            self._ask(heard.in_(store), FleetRecord(claims=facts.claims, verified=facts.verified))
        finally:
            store.close()
        return heard

    def _further(self, heard: Heard, _: ChangeSet) -> Iterator[str]:
        """Of what is held only those are asked about that the push allows to lose something."""
        if heard.held:
            repo, old, new = self._ends.repo, self._ends.base.commit, self._ends.target.commit
            trees = Trees(self._repositories)
            trees.claims = self._recorded.facts().claims
            said = trailers.said(repo, new.id, old.id, ALLOW)
            yield from held_for(repo, self._recorded, said, trees.at(self._recorded.source))

    def _load(self, trees: Trees, heard: Heard) -> Loaded:
        store = self._open()
        try:
            listening = heard.in_(store)
            identities = Identities(self._scratch / "keys")
            loader = Loader(listening, self._repositories, identities, lambda _: (), trees=trees, renders=self._renders)
            begun = loader.begin(self._recorded.source, self._recorded)
            if begun.problems:
                raise RepositoryUnreadable(f"what is served cannot be loaded ({begun.problems[0]})")
            heard.forget_others()
            self._ask(listening, tree.fleet(store))
            return begun
        finally:
            store.close()

    def _ask(self, store: Store, fleet: FleetRecord) -> None:
        old, new = self._ends.base.commit, self._ends.target.commit
        self._found = self._gate.pushed(store, old, new, self._config, fleet)

    def _open(self) -> Store:
        return open_at(self._scratch / f"rights{next(self._numbers)}", sync=False)

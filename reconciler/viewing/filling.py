"""A store that holds a workspace as a commit has it, with whom it takes something of: judged in part.

Called by viewer, in a process that lives for one store. It is loaded as a recovery loads it from the status commit that
names this commit; where none does, from the last one before it, and then led on to the commit as a server would lead
it. So what is held there is held here, and what the program decides it decides as it does for what is served: what
others have of what goes is found out as a review does. Nobody is asked, no key is read, and nothing is written
elsewhere.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path

from apiserver.model import commits, paths
from apiserver.model.commits import own
from apiserver.model.errors import StatusError
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.layout.part import Part
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.identities import Identities
from reconciler.loading.inpart import Heard, judged
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.sources import Sources
from reconciler.loading.trees import Trees
from reconciler.plan.system import shipped_workspaces
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.review.concerned import Offering, WhomItConcerns, offers
from reconciler.review.objects import where
from reconciler.statusbranch.recorded import FleetFacts, RecordedFleet

STORE = "store"


class CommitFilling:
    """`commit`: its id; `path`: the workspace's; `status`: the status commit to begin from, "" for none; `children`:
    with the workspaces right below it, which have an object in it each. `sources`: the directory of what workspaces
    have their content from, see Repositories. `renders`: for what is rendered."""

    def __init__(
        self,
        repo: Repository,
        commit: str,
        path: str,
        status: str,
        *,
        children: bool = False,
        sources: Path | None = None,
        renders: Renders = NOWHERE,
    ) -> None:
        self._repo, self._commit, self._path, self._children = repo, own(commit), path, children
        self._renders = renders
        self._repositories = Repositories(repo, sources)
        self._recorded = _OfOne(repo, status, path) if status else None
        self._concerned: WhomItConcerns | None = None
        self._offering: frozenset[str] = frozenset()
        """Whom others may have something of, before the last step."""
        self._numbers = count()

    def into(self, directory: Path) -> None:
        """Leaves the store in `directory/STORE`. Raises StatusError, RepositoryError and Everybody."""
        kept = self._recorded.kept_then if self._recorded is not None else ()
        if any(paths.is_within(self._path, top) for top in kept):
            text = f'the removal of workspace "{self._path}" was held at this commit: ask for the one before it'
            raise StatusError(404, "NotFound", text)
        part = Part("", {self._path, *shipped_workspaces()}, self._path if self._children else "")
        loaded = judged(
            self._repositories,
            self._recorded,
            part,
            lambda trees, heard: self._load(directory, trees, heard),
            self._more,
        )
        if loaded.problems:
            text = "; ".join(str(each) for each in loaded.problems)
            raise StatusError(404, "NotFound", f"nothing of commit {self._commit:.10} can be served: {text}")

    def _more(self, heard: Heard, found: ChangeSet) -> Iterable[str]:
        """Besides who was asked for those who may have something of what goes: then its loss is to be allowed."""
        if self._recorded is None:
            return ()
        self._recorded.asked |= heard.paths
        if not (heard.objects or heard.placed):
            return ()
        if self._concerned is None:
            trees = Trees(self._repositories)
            trees.claims = self._recorded.facts().claims
            self._concerned = WhomItConcerns(self._repo, trees.at(self._recorded.source), trees.at(self._commit))
        return self._concerned.further(heard, ChangeSet(), Offering(paths=self._offering, touched=found.became), None)

    def _load(self, directory: Path, trees: Trees, heard: Heard) -> Loaded:
        """Once more for each round in which somebody was missed: what the last one left is in STORE."""
        shutil.rmtree(directory / STORE, ignore_errors=True)
        store, recorded = open_at(directory / STORE, sync=False), self._recorded
        try:
            identities = Identities(directory / f"identities{next(self._numbers)}")
            repositories, renders = self._repositories, self._renders
            loader = Loader(heard.in_(store), repositories, identities, lambda _: (), trees=trees, renders=renders)
            loader.steppers.guesses = recorded is None
            loaded = self._loaded(loader, store, heard)
            self._require_content(loader.sources, store)
            return loaded
        finally:
            store.close()

    def _loaded(self, loader: Loader, store: Store, heard: Heard) -> Loaded:
        recorded = self._recorded
        if recorded is None:
            return loader.load(self._commit)
        begun = loader.begin(self._commit, recorded)
        heard.forget_others()  # what is recorded was allowed, or held, by who has all
        if begun.problems or recorded.source == self._commit:
            return begun
        self._offering = frozenset(path for cluster, path in where(store).items() if offers(store, cluster))
        return loader.take(self._commit)

    def _require_content(self, sources: Sources, store: Store) -> None:
        """Of another repository what a workspace was served with then, which may not be here any more, or never was."""
        record = tree.workspace_at(store, self._path)
        source = record.source if record is not None else {}
        commit = commits.parse(source.get("commit", ""))
        if source and (not commit or sources.sourced(self._path, commit, source.get("path", "")) is None):
            which = f"commit {commit.id:.10} of {source['repository']}" if commit else source["repository"]
            text = f'the content of workspace "{self._path}" at this commit comes from {which}, which is not here'
            raise StatusError(404, "NotFound", text)


class _OfOne(RecordedFleet):
    """What is recorded, without the workspaces that the one at `path` has nothing to do with: those that were held
    against their removal, or waited for their end, are read from trees of their own. `asked`: of whom it takes
    something, as far as is known by now."""

    def __init__(self, repo: Repository, commit: str, path: str) -> None:
        super().__init__(repo, commit)
        self._path = path
        self.asked: set[str] = set()

    @cached_property
    def _facts(self) -> FleetFacts:
        return super().facts()

    @property
    def kept_then(self) -> frozenset[str]:
        return frozenset(self._facts.kept)

    def facts(self) -> FleetFacts:
        leaving = {path: where for path, where in self._facts.leaving.items() if paths.is_within(self._path, path)}
        kept = {top: since for top, since in self._facts.kept.items() if self._is_asked(top)}
        return replace(self._facts, kept=kept, leaving=leaving)

    def _is_asked(self, top: str) -> bool:
        return any(paths.is_within(path, top) for path in self.asked)

"""What is to be rendered of sources before something counts: of a head all that it has, also for the workspaces below
the one with the source; and of one workspace what it is judged by.

Asked by commands/sourcing. Of what cannot be a workspace's content nothing is rendered; why is said where it is judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.model import commits
from apiserver.model.commits import CommitRef
from apiserver.registry import tree
from apiserver.storage.protocol import View
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.grafts import BORDER, OF
from reconciler.loading.grafting import inherited
from reconciler.loading.renderings import RenderedDirectory
from reconciler.loading.sourcelist import ListedSource
from reconciler.loading.sources import Content, Sources
from reconciler.repository.errors import RepositoryError

Found = list[RenderedDirectory]


class SourcedRenderings:
    def __init__(self, store: View, sources: Sources) -> None:
        self._store, self._sources = store, sources

    def of(self, source: ListedSource, head: CommitRef) -> dict[str, Found]:
        """All of a head, by the directories of workspaces there, "" for the one that has the source."""
        return {"": self.of_source(source, head), **dict(self._below(source, head))}

    def of_source(self, source: ListedSource, head: CommitRef) -> Found:
        """What the workspace with the source has there, and as it is served."""
        record, path = tree.workspace_at(self._store, source.path), source.ref.path
        return [*self._at(head, path, path), *self._served(record.source if record is not None else {})]

    def of_inherited(self, path: str) -> Iterator[tuple[str, Found]]:
        """The same of a workspace that stands in a source, with the one whose that is; nothing of any other."""
        record = tree.workspace_at(self._store, path)
        follows = record.follows if record is not None else {}
        above = tree.workspace_of(self._store, follows.get(OF, ""))
        if record is None or above is None:
            return
        grafted = tree.fleet(self._store).grafts.get(above.cluster, {})
        head, border = commits.parse(grafted.get("commit", "")), follows.get(BORDER, "")
        yield above.path, [*self._at(head, follows.get("path", ""), border), *self._served(record.source)]

    def _below(self, source: ListedSource, head: CommitRef) -> Iterator[tuple[str, Found]]:
        """Of those of which a head has something else rendered than is served, or that are held."""
        served = {record.source.get("path", ""): record for record in inherited(self._store, source.cluster)}
        try:
            found = self._sources.sourced(source.path, head, source.ref.path) if head.id else None
            if found is None or not isinstance(found.tree, ContentTree) or self._sources.fault_of(found):
                return
            for directory in found.tree.nested(found.directory):
                place = found.tree.content("", directory)
                here = [*self._sources.theirs_rendered(Content(found.tree, place))] if place is not None else []
                record = served.get(directory)
                was = self._served(record.source) if record is not None else []
                if record is None or record.errors or [e.says for e in here] != [e.says for e in was]:
                    yield directory, [*here, *was]
        except RepositoryError:
            return

    def _served(self, said: dict[str, str]) -> Found:
        path = said.get("path", "")
        return self._at(commits.parse(said.get("commit", "")), path, said.get(BORDER, path))

    def _at(self, commit: CommitRef, path: str, border: str) -> Found:
        try:
            content = self._sources.sourced("", commit, path, border) if commit.id else None
            if content is None or (path == border and self._sources.fault_of(content)):
                return []
            return [*self._sources.theirs_rendered(content)]
        except RepositoryError:
            return []

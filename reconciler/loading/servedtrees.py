"""In which tree the store's content of a workspace was declared.

Called where a workspace's old manifests are asked for. One that is not held is what the served commit says of it,
whenever that was judged. Which directories were whose does not follow from an earlier commit alone: one that lost its
workspace.yaml was its workspace's still, and may be somebody else's by now. So earlier commits are asked only for what
is held, together with what was recorded of such directories by then.
"""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.model.commits import CommitRef
from apiserver.registry.tree import WorkspaceRecord, summary, workspace_at
from apiserver.storage.protocol import Store
from reconciler.layout.grafts import OF, Grafts
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.whereabouts import Whereabouts
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.case import was_served
from reconciler.loading.step import StepTarget
from reconciler.loading.trees import Trees
from reconciler.repository.objects import TreeEntry


class ServedTrees:
    """Of one step to `target`."""

    def __init__(self, store: Store, trees: Trees, target: StepTarget) -> None:
        self._store, self._trees, self._served, self._lost = store, trees, target.served, target.lost
        self._here = target.tree
        self._ahead = frozenset({target.moment.commit, *target.arriving})
        """Where workspaces may be already: the step's own commit, and those that were never finished."""
        self._seen: tuple[WorkspaceTree | None, Whereabouts] = None, Whereabouts()
        self._found: tuple[WorkspaceTree, str, str, WorkspaceDir | None] | None = None

    @property
    def passed(self) -> CommitRef:
        """The commit that all workspaces are past."""
        return self._served

    def note(self, tree: WorkspaceTree, places: Whereabouts) -> None:
        """Where some workspaces stand in a tree, so that they need not be sought."""
        self._seen = tree, places

    def place(self, tree: WorkspaceTree, record: WorkspaceRecord) -> WorkspaceDir | None:
        """A workspace's directory in a tree that `of` gave. One is asked for several times before the next."""
        if self._found is None or self._found[0] is not tree or self._found[1:3] != (record.path, record.directory):
            seen = self._seen[1].get(record.path) if self._seen[0] is tree else None
            if seen is None or seen.directory != record.directory:
                seen = tree.find(record.path, record.directory)
            self._found = tree, record.path, record.directory, seen
        return self._found[3]

    def of(self, record: WorkspaceRecord) -> WorkspaceTree | None:
        """None for a workspace that never had a good commit."""
        if not record.head:
            return None
        before = workspace_at(self._store, record.path) if record.errors else None
        if before is not None and before.errors:  # not only since this step
            claims = summary(self._store, before.path).get("claims") or {}
            return self._trees.at(before.head, claims, self._grafts(record, before.head))
        if record.head in self._ahead:
            return self._trees.at(record.head, None, self._grafts(record, record.head))
        at, claims = self._brought_back(record) or (self._served, None)
        return self._trees.at(at, claims, self._grafts(record, at))

    def _grafts(self, record: WorkspaceRecord, at: CommitRef) -> Grafts | None:
        """In which one that stands in a tenant's repository is there as it is served; None where that is no matter."""
        return self._trees.served_with(record.source, record.path, record.directory, at) if record.source else None

    def commit(self, record: WorkspaceRecord) -> CommitRef:
        """The commit that has a workspace which is not held: the served one, or one that was never finished."""
        return record.head if record.head in self._ahead else self._served

    def since(self, record: WorkspaceRecord) -> CommitRef:
        """The commit that has it still, where the step takes its directory away: of a tenant's repository, where it is
        that which takes it away."""
        graft = self._trees.grafts.of(record.source.get(OF, "")) if record.source else None
        if graft is not None and self._here.graft_at(graft.directory) is not None:
            return graft.key.commit
        return self.commit(record)

    def last(self, record: WorkspaceRecord) -> WorkspaceTree | None:
        """The same; also where one was served before a recovery that could not bring it back."""
        found = self.of(record)
        if found is None and self._lost is not None:
            recorded, served, claims = self._lost.served(record.path, record.directory)
            found = self._trees.at(served, claims) if was_served(recorded) else None
        return found

    def _brought_back(self, record: WorkspaceRecord) -> tuple[CommitRef, Mapping[str, str]] | None:
        """Where one is that a recovery could not bring back at once, with the claims of there: it is back where it was,
        and follows from there. One that came back at once and is there still is the same by either tree."""
        if self._lost is None:
            return None
        _, served, claims = self._lost.served(record.path, record.directory)
        return (served, claims) if served == record.head else None

    def stands(self, record: WorkspaceRecord) -> tuple[CommitRef, dict[str, str]]:
        """The commit that says what is served of a workspace which is not held until now, and the directories within
        its own, or that this is in, that had lost their workspace.yaml there. That is the commit which last changed it;
        or, where such directories were others by then, so that it would be read as something else, the one that is
        served."""
        back = self._brought_back(record) if record.head not in self._ahead else None
        at, claims = back or (self.commit(record), self._trees.claims)
        inside = f"{record.directory}/"
        claims = {d: path for d, path in claims.items() if d.startswith(inside) or inside.startswith(f"{d}/")}
        same = at == record.head or self._files(record, record.head, claims) == self._files(record, at, claims)
        return record.head if same else at, claims

    def _files(self, record: WorkspaceRecord, at: CommitRef, claims: Mapping[str, str]) -> list[tuple[str, TreeEntry]]:
        tree = self._trees.at(at, claims, self._trees.served_with(record.source, record.path, record.directory))
        found = tree.find(record.path, record.directory)
        return [*tree.files(found)] if found is not None else []

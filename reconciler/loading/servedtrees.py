"""In which tree the store's content of a workspace was declared.

Called where a workspace's old manifests are asked for. One that is not held is what the served commit says of it,
whenever that was judged. Which directories were whose does not follow from an earlier commit alone: one that lost its
workspace.yaml was its workspace's still, and may be somebody else's by now. So earlier commits are asked only for what
is held, together with what was recorded of such directories by then.
"""

from __future__ import annotations

from apiserver.registry.tree import WorkspaceRecord, summary, workspace_at
from apiserver.storage.protocol import Store
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.trees import Trees


class ServedTrees:
    """Of one step. `served`: the fleet's commit when it began; `ahead`: commits at which workspaces may be already,
    that of the step and one that was never finished."""

    def __init__(self, store: Store, trees: Trees, served: str, ahead: frozenset[str]) -> None:
        self._store, self._trees, self._served, self._ahead = store, trees, served, ahead

    def of(self, record: WorkspaceRecord) -> WorkspaceTree | None:
        """None for a workspace that never had a good commit."""
        if not record.head:
            return None
        before = workspace_at(self._store, record.path) if record.errors else None
        if before is not None and before.errors:  # not only since this step
            return self._trees.at(before.head, summary(self._store, before.cluster).get("claims") or {})
        return self._trees.at(record.head if record.head in self._ahead else self._served)

    def claims(self, record: WorkspaceRecord) -> dict[str, str]:
        """Directories within a workspace's own that lost their workspace.yaml, as of the served commit."""
        inside = f"{record.directory}/"
        return {directory: path for directory, path in self._trees.claims.items() if directory.startswith(inside)}

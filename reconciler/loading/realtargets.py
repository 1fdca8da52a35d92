"""Which real clusters a fleet has, by its manifests: SyncTargets that a kubeconfig is the way to.

Asked before a server begins a fleet anew, or takes one over whose status branch does not say it: what runs on a real
cluster is not the store's to forget.
Reads every manifest of a commit, and parses those few that may be about one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from apiserver.model.commits import CommitRef
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.weight import MOST, too_heavy, weigh
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.sources import Sources
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories

_FIELD = b"kubeconfigSecretRef"


def real_targets(repositories: Repositories, commits: Iterable[CommitRef], renders: Renders = NOWHERE) -> list[str]:
    """SyncTargets of these commits that are real clusters, as `root:infra:eu-west`, sorted. What cannot be rendered is
    named by its file where one that it is made of may be about a cluster. Raises RepositoryUnreadable."""
    return sorted({name for commit in commits for name in _of(repositories.of(commit), commit, renders)})


def _of(repo: Repository, commit: CommitRef, renders: Renders) -> Iterator[str]:
    sources, tree = Sources(renders), WorkspaceTree(repo, repo.commit(commit.id).tree)
    root = repo.tree_at(tree.tree_id, tree.root)
    if root is not None and weigh(repo, [root], MOST) > MOST:
        raise RepositoryUnreadable(str(too_heavy(f"{tree.root} of commit {commit:.10}", MOST)))
    for workspace in tree.workspaces():
        said = (source.mentioning(_FIELD) for source in sources.ever(tree, workspace))
        for manifest in chain.from_iterable(said):
            if manifest.gvk.kind == "SyncTarget" and _is_real(manifest.value.get("spec")):
                yield f"{workspace.path}:{manifest.name}"
        for found in sources.rendered(tree, workspace):
            if any(_FIELD in repo.blob(entry.id) for _, entry in found.request.files()):
                yield from () if _is_read(sources, tree, workspace, found.path) else (f"{workspace.path}:{found.path}",)


def _is_read(sources: Sources, tree: WorkspaceTree, workspace: WorkspaceDir, path: str) -> bool:
    pieces = sources.of(tree, workspace).pieces()
    return any(piece.name == path and not piece.problems for piece in pieces)


def _is_real(spec: object) -> bool:
    """What is no mapping where it should be is nobody's way anywhere: such a manifest is an error, and held."""
    connection = spec.get("connection") if isinstance(spec, dict) else None
    return isinstance(connection, dict) and bool(connection.get(_FIELD.decode()))

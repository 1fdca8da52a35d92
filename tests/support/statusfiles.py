"""What tests of the status branch write into a store, and read from a branch."""

from __future__ import annotations

from typing import Any

from support.fleetrepo import FleetRepo

from apiserver.model.keys import Key
from apiserver.storage.protocol import Store
from reconciler.repository.mirror import Mirror
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch.recorded import RecordedFleet

BRANCH = "refs/heads/treeplane/status"
WEB, CLUSTER = "workspaces/root/web", "webcluster000000"
DEPLOYMENT = f"{WEB}/_status/default/deployments.apps/web.yaml"


def status(served: Any, **content: Any) -> Key:
    key: Key = served.put("deployments.apps:9f86", CLUSTER, "web", status=content)
    return key


def source_files(mirror: Mirror, commit: str) -> dict[str, str]:
    recorded = RecordedFleet(mirror.repository, commit)
    tree = mirror.repository.commit(commit).tree
    out = {}
    for path in recorded.paths():
        entry = mirror.repository.entry_at(tree, path)
        assert entry is not None
        out[path] = mirror.repository.blob(entry.id).decode()
    return out


def pushed(source: FleetRepo) -> dict[str, str]:
    head = source.repo.ref(BRANCH)
    return source.files(head) if head else {}


def on_top_of(source: FleetRepo, commit: str) -> str:
    head = source.repo.ref(BRANCH)
    return head if head is not None and head != commit and source.repo.is_ancestor(commit, head) else ""


def elsewhere(source: FleetRepo, files: dict[str, bytes]) -> str:
    """A commit of another server on the status branch."""
    head = source.repo.ref(BRANCH)
    assert head is not None
    tree = edit_tree(source.repo, source.repo.commit(head).tree, files)
    return commit_tree(source.repo, tree, [head, source.head], "Theirs\n", None, BRANCH, head)


def forget_the_log(store: Store, served: Any) -> None:
    served.put("configmaps", CLUSTER, "unlogged", log=False)
    assert store.oldest() == store.revision()

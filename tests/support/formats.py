"""What another release of Treeplane would have left: a store and a status branch that say so."""

from __future__ import annotations

from pathlib import Path

import lmdb

from apiserver.storage.lmdb_environment import FORMAT_KEY, STATE
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch import format


def set_format(store: Path, number: int) -> None:
    """Of a store that nobody has open."""
    with lmdb.open(str(store), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(FORMAT_KEY, str(number).encode(), db=env.open_db(STATE, txn=txn))


def write_format(repo: Repository, head: str, number: int) -> str:
    """A commit on top of one of the status branch, which says that it is in another format."""
    tree, parents = repo.commit(head).tree, repo.commit(head).parents
    entry = repo.entry_at(tree, format.FLEET)
    assert entry is not None
    said = {**format.load(repo.blob(entry.id)), "format": number}
    content = edit_tree(repo, tree, {format.FLEET: format.dump(said)})
    return commit_tree(repo, content, [head, parents[-1]], f"In format {number}")

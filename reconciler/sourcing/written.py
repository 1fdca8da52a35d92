"""What was written to one tenant's repository, kept here so that the same is never written twice, and only what is new
is sent.

    refs/treeplane/written    what the repository's branch has, as far as one knows
    refs/treeplane/sent       what was sent after that, of which nobody heard whether it arrived

Called by excerptpush.py, of one thread at a time for a repository. Each ref is a commit of its own without parents,
whose tree is the excerpt's and whose message says version, branch and the commit there: what somebody else put under
that one need not be here. All of it may be lost: then all is sent anew, on top of what is there.
"""

from __future__ import annotations

from reconciler.repository import packing
from reconciler.repository.command import Patience, git
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, move_ref
from reconciler.sourcing.excerpts import WrittenExcerpt
from reconciler.sourcing.kept import SourceRefs
from reconciler.sourcing.taking import ALONE

_WRITTEN, _SENT = "refs/treeplane/written", "refs/treeplane/sent"
_TREE, _BLOB = 2, 3
_PACKS = 20
_PATIENCE = Patience(total=120.0)

Objects = dict[str, tuple[int, bytes]]


class WrittenHere:
    """Methods raise RepositoryError."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def written(self) -> WrittenExcerpt | None:
        return self._read(_WRITTEN)

    def sent(self) -> WrittenExcerpt | None:
        return self._read(_SENT)

    def at(self, head: str) -> WrittenExcerpt | None:
        """Which of the two a commit there is; None for somebody else's."""
        return next((each for each in (self.sent(), self.written()) if each is not None and each.head == head), None)

    def send(self, excerpt: WrittenExcerpt) -> None:
        """It is about to be sent."""
        self._put(_SENT, excerpt)

    def arrived(self, excerpt: WrittenExcerpt) -> None:
        """It is there."""
        self._put(_WRITTEN, excerpt)
        move_ref(self.repository, _SENT, None, self.repository.ref(_SENT))

    def new(self, before: str | None, tree: str, most: int) -> Objects | None:
        """The objects of a tree that another one lacks, by id (kind and bytes); None where they have more bytes."""
        found: Objects = {}
        return found if self._gather(before, tree, found, most) >= 0 else None

    def tidy(self) -> None:
        """Drops what neither of the two has any more, once that is worth it."""
        load = packing.load(self.repository.git_dir)
        if load.packs > _PACKS or load.loose > 2 * _PACKS:
            SourceRefs(self.repository).make_room(_PATIENCE, ALONE)
            git(self.repository.git_dir, "prune", "--expire=now", variables=ALONE, patience=_PATIENCE)

    def _gather(self, before: str | None, tree: str, found: Objects, left: int) -> int:
        """How many bytes are left, less than none where they do not suffice."""
        data = self.repository.raw(tree, _TREE)
        found[tree] = _TREE, data
        left -= len(data)
        there = {entry.name: entry for entry in self.repository.entries(before)} if before else {}
        known = {entry.id for entry in there.values()}
        for entry in self.repository.entries(tree):
            if left < 0:
                break
            if entry.id in known or entry.id in found:
                continue
            if entry.kind == "tree":
                same = there.get(entry.name)
                left = self._gather(same.id if same and same.kind == "tree" else None, entry.id, found, left)
            else:
                blob = self.repository.blob(entry.id)
                found[entry.id] = _BLOB, blob
                left -= len(blob)
        return left

    def _read(self, ref: str) -> WrittenExcerpt | None:
        commit = self.repository.ref(ref)
        if commit is None:
            return None
        info = self.repository.commit(commit)
        version, branch, head = info.message.split("\n")[:3]
        return WrittenExcerpt(version, branch, info.tree, head)

    def _put(self, ref: str, excerpt: WrittenExcerpt) -> None:
        text = f"{excerpt.version}\n{excerpt.branch}\n{excerpt.head}\n"
        commit_tree(self.repository, excerpt.tree, [], text, 0, ref, self.repository.ref(ref))

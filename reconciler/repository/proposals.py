"""Branches of proposals in the source, for writes through the API that somebody has to agree to first.

Called by loading/proposals, in a thread of its own. A branch is made of commits on top of what is served. Where that
moved on, what the branch holds becomes one commit on top of it, as long as nobody has to decide anything; what was
merged is on it no more. People may push to it: what they pushed is gone on with. Like the desired branch it is moved by
compare-and-swap, and never under a work tree's feet.

Its commits bear no signature of the server's. That stands for what may be served (loading/vouching), and of a proposal
nobody has said so yet: whoever merges it does. Nor did the server see all that people pushed to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from itertools import islice

from apiserver.model.counts import some_of
from apiserver.model.proposals import PROPOSALS
from reconciler.repository import library
from reconciler.repository.borrowed import merged_tree
from reconciler.repository.desired import signature
from reconciler.repository.errors import NotMerged, RepositoryUnreadable
from reconciler.repository.messages import one_line, with_trailers
from reconciler.repository.mirror import Mirror
from reconciler.repository.mixing import mixed
from reconciler.repository.objects import CommitInfo, Repository
from reconciler.repository.trailers import said
from reconciler.repository.write import AUTHOR, MAIL, authored_bytes, edit_tree, put_commit

_HEADS = "refs/heads/"
_SHOWN = 3
_CO_AUTHOR = "Co-authored-by"


class ProposalBranches:
    """Of a mirror's source. Not thread-safe."""

    def __init__(
        self,
        mirror: Mirror,
        ours: Callable[[], None] = lambda: None,
        *,
        commits: int = 50,
        carried: Collection[str] = (),
    ) -> None:
        """`ours`: see Desired. `commits`: that a branch has at most before they become one; `carried`: trailers
        of theirs that the one says, too."""
        self._mirror, self._ours = mirror, ours
        self._commits, self._carried = commits, tuple(carried)
        # Its own, since the mirror's is another thread's.
        self.repo = Repository(mirror.path, mirror.repository.folders)

    def names(self) -> list[str]:
        """All there are. Raises RepositoryUnreadable."""
        return [ref.removeprefix(_HEADS) for ref in self._mirror.refs(f"{_HEADS}{PROPOSALS}")]

    def head(self, name: str) -> str | None:
        """Where a branch stands, with its objects here. Raises RepositoryError."""
        return self._mirror.newest(name)

    def ground(self, name: str, head: str | None, served: str, author: str) -> str:
        """The commit that a further one of this branch goes on from: `served` where nothing is on it that is not there
        already. `head`: where the branch stands. Raises NotMerged."""
        if head is None:
            return served
        repo, base = self.repo, self.repo.merge_base(head, served)
        if base is None:
            raise NotMerged(f"{name} has nothing in common with what is served", _remedy(name))
        if base == head:
            return served
        tree, there = repo.commit(head).tree, repo.commit(served).tree
        if base != served:
            tree = self._merged(name, base, head, served)
        if tree == there:
            return served
        made = [*repo.new_commits(head, served)] if base != served else self._many(head, served)
        return self._squashed(tree, served, head, made, author) if made else head

    def commit(
        self, base: str, changes: Mapping[str, bytes | None], author: str, message: str, *, empty: bool = False
    ) -> str | None:
        """A commit on top of `base` with `changes` made, by `author`, a user's name. None where they change nothing,
        unless it may be `empty`."""
        before = self.repo.commit(base).tree
        tree = edit_tree(self.repo, before, changes)
        return self._made(tree, base, author, message) if tree != before or empty else None

    def publish(self, name: str, commit: str, expected: str | None) -> None:
        """Makes `commit` the branch's head if that still is `expected`. Raises as Desired.publish does."""
        self._ours()
        self._mirror.push_branch(name, commit, expected)

    def _merged(self, name: str, base: str, head: str, served: str) -> str:
        repo, found = self.repo, merged_tree(self.repo, served, head)
        if not found.tree and not found.conflicts:
            raise RepositoryUnreadable(f"{name} cannot be rebased", "install git 2.38 or newer, or delete the branch")
        conflicts = found.conflicts
        if found.tree:
            before, ours, theirs = (repo.commit(each).tree for each in (base, served, head))
            conflicts = mixed(repo, before, ours, theirs, found.tree)
            if not conflicts:
                return found.tree
        files = some_of([*map(one_line, conflicts)], _SHOWN)
        raise NotMerged(f"{name} conflicts with what is served in {files}", _remedy(name))

    def _many(self, head: str, served: str) -> list[CommitInfo]:
        """The branch's commits where they are too many."""
        found = [*islice(self.repo.new_commits(head, served), self._commits)]
        return [*self.repo.new_commits(head, served)] if len(found) >= self._commits else []

    def _squashed(self, tree: str, served: str, head: str, made: list[CommitInfo], author: str) -> str:
        """What the branch holds as one commit on top of `served`, which says what it was made of, and of whom."""
        own = "{} <{}>".format(*signature(author))
        said_of = [one_line(each.message.partition("\n")[0]) for each in reversed(made) if len(each.parents) == 1]
        others = dict.fromkeys(one_line(each.author) for each in reversed(made) if each.author != own)
        trailers = {name: sorted(said(self.repo, head, served, name)) for name in self._carried}
        if len(said_of) == 1:
            subject, lines = said_of[0], []
        else:
            subject, lines = f"Propose {len(said_of)} changes", said_of[-self._commits :]
        message = with_trailers(subject, lines, {**trailers, _CO_AUTHOR: [*others]})
        return self._made(tree, served, author, message)

    def _made(self, tree: str, base: str, author: str, message: str) -> str:
        name, mail = signature(author)
        now = int(time.time())
        people = library.Author(name, mail, now), library.Author(AUTHOR, MAIL, now)
        return put_commit(self.repo, authored_bytes(tree, [base], message, people, None))


def _remedy(name: str) -> str:
    return f"rebase it by hand and push, or delete it (git push origin --delete {name}), and write again"

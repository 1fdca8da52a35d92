"""A commit of a source, as it is judged for a workspace: the branch's head, or the one that its workspace.yaml pins it
to; whether that may follow what is served.

Made and asked by sourced.
"""

from __future__ import annotations

from apiserver.model.commits import NONE, CommitRef
from reconciler.layout.sourceref import SourceRef
from reconciler.loading.heads import ALLOW as ALLOW_REWRITE
from reconciler.repository import trailers
from reconciler.repository.objects import Repository

_COMMITS, _SAYING = 1000, 20
"""Of what is new in a source, how many commits are looked at for what they allow, and how many of those that say it."""


class SourceHead:
    """One source, as it is judged for one workspace. `head`: NONE where it was not looked at yet, as right behind a
    recovery that has what was served. `served`: the commit of it that is served, NONE for none;
    `is_same_branch`: whether it came from the same branch. Of another one, which the fleet names, nobody asks more."""

    def __init__(
        self,
        ref: SourceRef,
        repo: Repository | None,
        head: CommitRef,
        served: CommitRef,
        *,
        is_same_branch: bool = True,
    ) -> None:
        self.ref, self.repo, self.head, self.served = ref, repo, head, served
        self.is_same_branch = is_same_branch

    @property
    def is_here(self) -> bool:
        """Whether there is something to judge."""
        commit = self.head or (self.served if self.is_same_branch else NONE)
        return self.repo is not None and bool(commit) and self.repo.has(commit.id)

    @property
    def is_unknown(self) -> bool:
        """Whether it is not known yet what it has."""
        return not self.is_here

    @property
    def is_new(self) -> bool:
        """Not so where nobody knows of a head: what is served is judged then."""
        return bool(self.head) and self.head != self.served

    def said(self, trailer: str) -> set[str]:
        """The values of a trailer in what is new."""
        if self.repo is None or not self.is_new:
            return set()
        return trailers.said(self.repo, self.head.id, self.served.id, trailer, _COMMITS, _SAYING)

    def against(self) -> tuple[str, str] | None:
        """Why the head does not follow what is served, and what to do."""
        repo, head, served = self.repo, self.head, self.served
        if repo is None or not served or not self.is_new or not self.is_same_branch:
            return None
        if repo.is_ancestor(served.id, head.id):
            return None
        if served.id in self.said(ALLOW_REWRITE):
            return None
        allow = f"git commit --allow-empty -m 'Take it' -m '{ALLOW_REWRITE}: {served.id}'"
        if repo.is_ancestor(head.id, served.id):
            text = f"{self.ref} went back to {head.id}, behind {served.id}, which is served"
            hint = f"push what it had again; to undo commits, revert them: git revert {head.id:.12}..{served.id:.12}"
            return text, f"{hint}; or push on top of it: {allow}"
        text = f"{self.ref} was rewritten: {head.id} does not contain {served.id}, which is served"
        return text, f"to have it followed, push on top of it: {allow}"


class PinnedHead(SourceHead):
    """The commit that a pin names. What the branch has is not followed then: the commit has to be one that the branch,
    or what is served, contains. `name`: of the source."""

    def __init__(self, branch: SourceHead, name: str, commit: str) -> None:
        head, same = CommitRef(name, commit), branch.is_same_branch
        super().__init__(branch.ref, branch.repo, head, branch.served, is_same_branch=same)
        self._branch = branch.head

    @property
    def is_unknown(self) -> bool:
        return not self._branch and not self._is_in(self.served)

    def against(self) -> tuple[str, str] | None:
        if self._is_in(self.served) or self._is_in(self._branch):
            return None
        text = f"neither {self.ref} nor what is served contains {self.head.id:.10}"
        return text, "name a commit that the branch was at, by its full id; or take spec.serve out: treeplane resume"

    def _is_in(self, other: CommitRef) -> bool:
        repo = self.repo
        if repo is None or not other or not (repo.has(self.head.id) and repo.has(other.id)):
            return False
        return repo.is_ancestor(self.head.id, other.id)

"""What is written to a tenant's repository on a git server of his, without the server around it: one push at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from support.fleetrepo import FleetRepo
from support.gitserver import GitServer
from support.sourcevisits import NAME

from reconciler.repository.difference import walk
from reconciler.repository.objects import Repository
from reconciler.repository.sourcestore import SourceStore
from reconciler.repository.write import edit_tree
from reconciler.sourcing.excerptpush import ExcerptPush
from reconciler.sourcing.excerpts import Excerpt, MadeExcerpt, WrittenExcerpt
from reconciler.sourcing.settings import DEFAULT, SourceBounds
from reconciler.sourcing.visit import within
from reconciler.sourcing.written import WrittenHere

BRANCH = "treeplane/status"
Files = Mapping[str, str]


class WrittenTenant:
    """`repository`: a.git on the tenant's `server`. What was written there is kept in `store`."""

    def __init__(self, server: GitServer, repository: FleetRepo, folder: Path) -> None:
        self.server, self.repository, self.folder = server, repository, folder
        self.store = SourceStore(folder)
        self.checks = 0
        self.sign: Callable[[bytes], str] | None = None

    def excerpt(self, files: Files, version: str = "", branch: str = BRANCH, **more: Any) -> Excerpt:
        def make(here: Repository, _: WrittenExcerpt | None) -> MadeExcerpt:
            return MadeExcerpt(edit_tree(here, None, {path: text.encode() for path, text in files.items()}), "Status\n")

        place = self.server.source("a.git", branch, **more)
        return Excerpt(place, version or str(sorted(files.items())).replace("\n", " "), make)

    def push(
        self, files: Files, seconds: float = 60.0, bounds: SourceBounds = DEFAULT.bounds, **more: Any
    ) -> WrittenExcerpt:
        """What is there then."""
        made = ExcerptPush(NAME, self.excerpt(files, **more), within(seconds), self.sign, self._check)
        return made.make(self.store, bounds)

    def _check(self) -> None:
        self.checks += 1

    @property
    def here(self) -> WrittenHere:
        return WrittenHere(self.store.make(NAME))

    @property
    def there(self) -> Repository:
        return Repository(self.repository.path)

    def head(self, branch: str = BRANCH) -> str | None:
        return self.there.ref(f"refs/heads/{branch}")

    def files(self, branch: str = BRANCH) -> dict[str, str]:
        """What the branch has."""
        head = self.head(branch)
        assert head is not None
        return {
            path: self.there.blob(entry.id).decode() for path, entry in walk(self.there, self.there.commit(head).tree)
        }

    def history(self, branch: str = BRANCH) -> list[str]:
        """Subjects of the branch's commits, the oldest first."""
        head, found = self.head(branch), list[str]()
        while head:
            info = self.there.commit(head)
            found.append(info.message.partition("\n")[0])
            head = info.parents[0] if info.parents else None
        return found[::-1]

"""A tenant's repository on a git server of his, and where what is fetched of it comes to."""

from __future__ import annotations

from dataclasses import dataclass, field

from support.fleetrepo import FleetRepo
from support.gitserver import GitServer

from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import source_name
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.disk import SourceDisk
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.settings import DEFAULT, FollowSettings
from reconciler.sourcing.visit import Visit, Visited, within

NAME = source_name("cluster", "https://example.com/a.git")


@dataclass
class Tenant:
    """`repository`: a.git on the tenant's `server`, with one commit. What is fetched of it comes to `store`."""

    server: GitServer
    repository: FleetRepo
    store: SourceStore
    second: bool = field(default=False)
    refused: frozenset[str] = frozenset()
    disk: SourceDisk | None = None

    def visit(
        self,
        source: FollowedSource | None = None,
        settings: FollowSettings = DEFAULT,
        keep: frozenset[str] = frozenset(),
        seconds: float = 60.0,
    ) -> Visited:
        made = Visit(NAME, source or self.server.source("a.git"), keep, self.refused, self.second, within(seconds))
        found = made.make(self.disk or SourceDisk(self.store, settings.together), settings)
        self.second, self.refused = found.second, self.refused | found.refused
        return found

    @property
    def here(self) -> Repository:
        found = self.store.open(NAME)
        assert found is not None
        return found

    def left_over(self) -> list[str]:
        """Whatever stands in the repository that no finished visit leaves."""
        if self.store.open(NAME) is None:
            return []
        names = [path.relative_to(self.here.git_dir).as_posix() for path in self.here.git_dir.rglob("*")]
        return [name for name in names if "tmp" in name or "incoming" in name or name.endswith(".lock")]

"""A git server of a tenant's, and the means to visit it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo
from support.gitserver import GitServer
from support.sourcevisits import Tenant
from support.writtensources import WrittenTenant

from reconciler.repository.sourcestore import SourceStore


@pytest.fixture
def tenant(tmp_path: Path) -> Iterator[Tenant]:
    (tmp_path / "repositories").mkdir()
    server = GitServer(tmp_path / "repositories", tmp_path / "keys")
    repository = FleetRepo(tmp_path / "repositories" / "a.git")
    repository.commit({"app/web.yaml": "one"})
    yield Tenant(server, repository, SourceStore(tmp_path / "sources"))
    server.close()


@pytest.fixture
def written(tenant: Tenant, tmp_path: Path) -> WrittenTenant:
    return WrittenTenant(tenant.server, tenant.repository, tmp_path / "excerpts")

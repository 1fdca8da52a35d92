"""Who stands for what comes from a tenant's repository."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from support.loadedfleet import configmap
from support.sourcedfleet import SourcedFleet, TenantRepos

from apiserver.auth.user import User
from apiserver.model import marks
from apiserver.model.commits import CommitRef, own
from reconciler.loading.sourcevoucher import voucher
from reconciler.loading.vouching import Voucher
from reconciler.plan.pushedby import PUSH, PushedBy

ADMIN = Voucher(PushedBy("admin", PUSH), User("admin"))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap()})
    made.source()
    yield made
    made.close()


def test_it_is_who_stands_for_the_commit_that_says_so(fleet: SourcedFleet) -> None:
    said = fleet.repo.head
    asked: list[CommitRef] = []
    fleet.commit({"workspaces/root/app.yaml": configmap(a="later")})
    fleet.push({"deploy/app.yaml": configmap(a="tenant")})
    found = voucher(fleet.store, fleet.record("root:a"), lambda commit: asked.append(commit) or ADMIN)
    assert (found, asked) == (ADMIN, [own(said)])


@pytest.mark.parametrize("owner", [{"username": "tess", "groups": ["team"]}, {"nobody": 1}])
def test_or_whom_its_workspace_names_as_its_owner(fleet: SourcedFleet, owner: dict[str, object]) -> None:
    key = fleet.key("root", "workspaces.tenancy.kcp.io", "a", "")
    fleet.update(key, lambda obj: obj["metadata"]["annotations"].update({marks.OWNER: orjson.dumps(owner).decode()}))
    found = voucher(fleet.store, fleet.record("root:a"), lambda _: ADMIN)
    if "username" in owner:
        assert found.user is not None
        assert (found.user.name, found.is_free) == ("tess", False)
    else:
        assert (found.user, found.is_free) == (None, False)
        assert found.why

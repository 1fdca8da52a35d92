"""What kcp grants everybody in root stands there where treeplane.yaml says so, and only there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import LoadedFleet

from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, Attributes, User

OPEN = f"{TREEPLANE_YAML}spec: {{rootAccess: Authenticated}}\n"
CLOSED = f"{TREEPLANE_YAML}spec: {{rootAccess: None}}\n"
ANN = User("ann", (AUTHENTICATED,))
LIST = Attributes("list", "tenancy.kcp.io", "v1alpha1", "workspaces")
BROKEN = {"workspaces/root/bad.yaml": "kind: ConfigMap\n"}


def lets_in(fleet: LoadedFleet, asked: Attributes = LIST, cluster: str = "root") -> bool:
    return Authorizer(fleet.store).authorize(cluster, ANN, asked).allowed


def test_it_is_open_to_nobody_by_default(fleet: LoadedFleet) -> None:
    assert not lets_in(fleet)


def test_everybody_may_do_what_kcp_grants_them(empty: LoadedFleet) -> None:
    empty.begin({"treeplane.yaml": OPEN})
    for verb in ("get", "list", "watch"):
        for resource in ("workspaces", "workspacetypes"):
            assert lets_in(empty, Attributes(verb, "tenancy.kcp.io", "v1alpha1", resource))
    for name in ("tenancy.kcp.io", "topology.kcp.io"):
        assert lets_in(empty, Attributes("bind", "apis.kcp.io", "v1alpha1", "apiexports", name=name))
    for name in ("universal", "organization", "team"):
        assert lets_in(empty, Attributes("use", "tenancy.kcp.io", "v1alpha1", "workspacetypes", name=name))
    assert not lets_in(empty, Attributes("use", "tenancy.kcp.io", "v1alpha1", "workspacetypes", name="home"))
    assert not lets_in(empty, Attributes("create", "tenancy.kcp.io", "v1alpha1", "workspaces"))
    assert not lets_in(empty, Attributes("list", version="v1", resource="configmaps"))
    assert not lets_in(empty, cluster=empty.record("root:a").cluster)


def test_it_counts_with_its_commit_both_ways(fleet: LoadedFleet) -> None:
    fleet.commit({"treeplane.yaml": OPEN})
    assert lets_in(fleet)
    assert not fleet.held()
    fleet.commit({"treeplane.yaml": CLOSED})
    assert not lets_in(fleet)
    assert not fleet.held()
    assert not [key for key in fleet.everything() if "kcp:" in key.name]


def test_the_same_again_writes_nothing(fleet: LoadedFleet) -> None:
    fleet.commit({"treeplane.yaml": OPEN})
    fleet.commit({"treeplane.yaml": f"{OPEN}# as it was\n"})
    assert fleet.written() == []


def test_root_that_is_held_keeps_what_it_grants_until_it_is_good(fleet: LoadedFleet) -> None:
    fleet.commit({"treeplane.yaml": OPEN, **BROKEN})
    assert not lets_in(fleet)
    fleet.commit({"workspaces/root/bad.yaml": None})
    assert lets_in(fleet)


@pytest.mark.parametrize("text", [OPEN, CLOSED])
def test_a_recovery_grants_the_same(fleet: LoadedFleet, another: Callable[..., LoadedFleet], text: str) -> None:
    fleet.commit({"treeplane.yaml": OPEN})
    fleet.commit({"treeplane.yaml": text})
    fleet.publish()
    new = another(fleet, keys=fleet.keys)
    new.load(new.recorded())
    assert new.everything().keys() == fleet.everything().keys()
    assert lets_in(new) == lets_in(fleet) == (text == OPEN)

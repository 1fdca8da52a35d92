"""A directory that lost its workspace.yaml is its workspace's still, and its parent's at no time."""

from __future__ import annotations

from collections.abc import Callable

from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import assert_same, recover

ROOT, D = "workspaces/root", "workspaces/root/d"
LEFT = {f"{D}/workspace.yaml": None, f"{ROOT}/more.yaml": configmap("more")}
Another = Callable[..., LoadedFleet]


def left_behind(fleet: LoadedFleet) -> None:
    """root:d, with an object that root has one like, loses its workspace.yaml; root is served from that commit."""
    fleet.commit(
        {f"{ROOT}/mine.yaml": configmap("same"), f"{D}/workspace.yaml": "", f"{D}/its.yaml": configmap("same")}
    )
    fleet.commit(LEFT)
    assert set(fleet.held()) == {"root:d"}


def restart(fleet: LoadedFleet) -> None:
    fleet.loader = fleet.new_loader()


def test_what_was_left_behind_and_put_back_takes_nothing_from_the_parent(fleet: LoadedFleet) -> None:
    left_behind(fleet)
    fleet.commit({f"{D}/workspace.yaml": ""})
    restart(fleet)
    fleet.commit({f"{ROOT}/more.yaml": configmap("more", n="1")})
    assert fleet.held() == {}
    assert fleet.get("root", "configmaps", "same", "default")


def test_nor_while_the_parent_is_held(fleet: LoadedFleet, another: Another) -> None:
    left_behind(fleet)
    fleet.commit({f"{ROOT}/bad.yaml": "kind: ["})
    fleet.commit({f"{D}/workspace.yaml": ""})
    fleet.publish()
    assert_same(recover(fleet, another), fleet)

    restart(fleet)
    fleet.commit({f"{ROOT}/bad.yaml": None})
    assert fleet.held() == {}
    mine = fleet.get("root", "configmaps", "same", "default")
    assert mine["metadata"]["annotations"]["treeplane.dev/source-path"] == f"{ROOT}/mine.yaml"

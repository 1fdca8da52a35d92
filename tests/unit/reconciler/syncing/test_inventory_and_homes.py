"""Inventories and namespaces on a target."""

from __future__ import annotations

from typing import Any

from apiserver.model.commits import own
from reconciler.syncing.homes import LOCATOR, Homes, Identity
from reconciler.syncing.inventory import PARENT_NAME, Inventory, applyset_id, parent, read

TARGET = Identity("KEY", "root:org:ws", "us-west1", "syncTargetUID")


def test_an_inventory_reads_as_it_was_written() -> None:
    kinds = frozenset({("apps", "Deployment"), ("", "ConfigMap")})
    made = parent("kcp-x", Inventory("root:shop", own("c1" * 20), kinds), {"ours": "yes"})
    assert made["metadata"]["labels"]["ours"] == "yes"
    assert made["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap,Deployment.apps"
    assert read(made) == Inventory("root:shop", own("c1" * 20), kinds)


def test_the_id_is_the_specifications() -> None:
    assert applyset_id("kcp-x").startswith("applyset-")
    assert applyset_id("kcp-x").endswith("-v1")
    assert len(applyset_id("kcp-x")) <= 63
    assert applyset_id("kcp-x") != applyset_id("kcp-y")


def test_an_object_of_that_name_elsewhere_is_no_inventory() -> None:
    made = parent("kcp-x", Inventory("root:shop"), {})
    made["metadata"]["namespace"] = "kcp-y"
    assert read(made) is None
    assert read({"metadata": {"name": PARENT_NAME, "namespace": "kcp-x"}}) is None


def seen(name: str, locator: str, uid: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid, "annotations": {LOCATOR: locator}}}


def test_namespaces_are_named_as_kcp_names_them_and_found_by_their_locator() -> None:
    changed: list[tuple[str, str]] = []
    homes = Homes(TARGET, lambda cluster, namespace: changed.append((cluster, namespace)))
    manifest = homes.manifest("root:org:ws", "test")
    assert manifest["metadata"]["name"] == "kcp-33jbiactwhg0"
    locator = manifest["metadata"]["annotations"][LOCATOR]
    homes.saw(seen("named-otherwise", locator))
    home = homes.get("root:org:ws", "test")
    assert home is not None
    assert home.name == "named-otherwise"
    assert homes.origin("named-otherwise") == ("root:org:ws", "test")
    homes.saw(seen("a-second-one", locator, "2"))
    assert homes.get("root:org:ws", "test") == home
    assert homes.strange() == ["a-second-one"]
    homes.gone("a-second-one")
    homes.gone("named-otherwise")
    assert homes.get("root:org:ws", "test") is None
    assert homes.strange() == []
    assert changed == [("root:org:ws", "test")] * 2


def test_what_an_earlier_sync_target_of_the_name_left_is_strange() -> None:
    homes = Homes(TARGET, lambda *_: None)
    earlier = Identity(TARGET.key, TARGET.cluster, TARGET.name, "another uid")
    homes.saw(seen("kcp-old", earlier.locator("c", "n")))
    homes.saw(seen("kcp-broken", "not json"))
    assert homes.strange() == ["kcp-broken", "kcp-old"]

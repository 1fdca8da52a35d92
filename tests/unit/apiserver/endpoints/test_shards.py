"""Shards through the API: objects of root, with the addresses of the server where they say none."""

from __future__ import annotations

from typing import Any

import pytest

SHARDS = "/apis/core.kcp.io/v1alpha1/shards"
ADDRESSES = ("baseURL", "externalURL", "virtualWorkspaceURL")
URL = "https://fleet.example.org"


@pytest.fixture
def sharded(api: Any) -> Any:
    api.put_fleet(loaded=True, url=URL)
    api.put(
        api.manifest("core.kcp.io/v1alpha1 Shard", "root", labels={"name": "root"}, spec={}),
        api.manifest("core.kcp.io/v1alpha1 Shard", "eu", labels={"region": "eu"}, spec={"baseURL": "https://eu"}),
    )
    return api


def test_a_shard_without_addresses_is_at_the_server(sharded: Any, run: Any) -> None:
    found = run(sharded.get(f"/clusters/root{SHARDS}/root")).json
    assert found["spec"] == dict.fromkeys(ADDRESSES, URL)
    found = run(sharded.get(f"/clusters/root{SHARDS}/eu")).json
    assert found["spec"] == dict.fromkeys(ADDRESSES, "https://eu")


@pytest.mark.parametrize("scope", ["root", "*"])
def test_lists_show_them(sharded: Any, run: Any, scope: str) -> None:
    found = run(sharded.get(f"/clusters/{scope}{SHARDS}?labelSelector=name%3Droot")).json
    assert [(item["metadata"]["name"], item["spec"]["baseURL"]) for item in found["items"]] == [("root", URL)]


def test_columns_are_kcps(sharded: Any, run: Any) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    found = run(sharded.get(f"/clusters/root{SHARDS}", accept=accept)).json
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Region", "URL", "External URL", "Age"]
    rows = {row["cells"][0]: row["cells"][1:4] for row in found["rows"]}
    assert rows == {"root": [None, URL, URL], "eu": ["eu", "https://eu", "https://eu"]}


def test_root_alone_has_them(sharded: Any, run: Any) -> None:
    assert run(sharded.get(f"/clusters/root:shop{SHARDS}")).status == 404
    found = run(sharded.get("/clusters/root:shop/apis/core.kcp.io/v1alpha1")).json
    assert "shards" not in [each["name"] for each in found["resources"]]
    found = run(sharded.get("/clusters/root/apis/core.kcp.io/v1alpha1")).json
    assert "shards" in [each["name"] for each in found["resources"]]

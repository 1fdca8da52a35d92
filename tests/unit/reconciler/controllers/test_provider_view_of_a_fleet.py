"""The provider's view of what is pushed: claims that commits accept and take back, and the same after a recovery."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import widgets
from support.apifleet import ApiFleet
from support.loadedfleet import A, B, configmap

V2 = "apis.kcp.io/v1alpha2"
CONFIGMAPS = "/api/v1/configmaps"


def export(*claims: str) -> str:
    resource = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io"}
    asked = [{"group": "", "resource": each, "verbs": ["*"]} for each in claims]
    spec = {"resources": [resource], "permissionClaims": asked}
    return json.dumps({"apiVersion": V2, "kind": "APIExport", "metadata": {"name": "widgets"}, "spec": spec})


def binding(*claims: str, **selector: Any) -> str:
    chosen = selector or {"matchAll": True}
    said = [{"group": "", "resource": r, "verbs": ["*"], "selector": chosen, "state": "Accepted"} for r in claims]
    spec = {"reference": {"export": {"path": "root:a", "name": "widgets"}}, "permissionClaims": said}
    return json.dumps({"apiVersion": V2, "kind": "APIBinding", "metadata": {"name": "widgets"}, "spec": spec})


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    """root:a offers Widgets and claims ConfigMaps; root:b, which has one of each, takes Widgets."""
    made = ApiFleet(tmp_path / "fleet")
    made.begin({f"{A}/schema.json": widgets.schema(), f"{A}/export.json": export("configmaps")})
    made.commit({f"{B}/binding.json": binding(), f"{B}/w.json": widgets.widget(size=1), f"{B}/c.yaml": configmap("c")})
    made.settle()
    yield made
    made.close()


def seen(fleet: ApiFleet, what: str) -> list[str]:
    view = f"/services/apiexport/root:a/widgets/clusters/*{what}"
    reply = fleet.ask("GET", view)
    assert reply.status == 200, reply.message
    return [item["metadata"]["name"] for item in reply.json["items"]]


def test_a_claim_is_what_both_commits_say(fleet: ApiFleet) -> None:
    assert seen(fleet, "/apis/example.io/v1/widgets") == ["w"]
    assert seen(fleet, CONFIGMAPS) == []
    fleet.commit({f"{B}/binding.json": binding("configmaps")})
    assert seen(fleet, CONFIGMAPS) == ["app", "c"]
    fleet.commit({f"{B}/binding.json": binding("configmaps", matchLabels={"a": "b"})})
    assert seen(fleet, CONFIGMAPS) == []
    fleet.commit({f"{B}/binding.json": binding("configmaps"), f"{A}/export.json": export()})
    assert fleet.ask("GET", f"/services/apiexport/root:a/widgets/clusters/*{CONFIGMAPS}").status == 404
    assert seen(fleet, "/apis/example.io/v1/widgets") == ["w"]


def test_a_recovery_sees_the_same(fleet: ApiFleet, tmp_path: Path) -> None:
    fleet.commit({f"{B}/binding.json": binding("configmaps")})
    fleet.settle()
    fleet.publish()
    again = ApiFleet(tmp_path / "again", repo=fleet.repo, keys=fleet.keys)
    try:
        again.load(again.recorded())
        for what in ("/apis/example.io/v1/widgets", CONFIGMAPS, f"/apis/{V2}/apibindings"):
            view = f"/services/apiexport/root:a/widgets/clusters/*{what}"
            mine, theirs = (each.ask("GET", view).json["items"] for each in (fleet, again))
            for items in (mine, theirs):
                for item in items:
                    del item["metadata"]["resourceVersion"]
            assert mine == theirs and mine
    finally:
        again.close()

"""Endpoint slices: an export's own and others', and the addresses that appear with the first consumer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import widgets
from support.apifleet import ApiFleet
from support.loadedfleet import A, B, LoadedFleet

SLICES = "apiexportendpointslices.apis.kcp.io"
FILES = {f"{A}/schema.json": widgets.schema(), f"{A}/export.json": widgets.export()}
PARTITION = {"apiVersion": "topology.kcp.io/v1alpha1", "kind": "Partition", "metadata": {"name": "east"}}
PATH = "/apis/apis.kcp.io/v1alpha1/apiexportendpointslices"


def named(name: str, export: str = "widgets", path: str = "root:a", **more: Any) -> dict[str, Any]:
    kind = {"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExportEndpointSlice"}
    return {**kind, "metadata": {"name": name}, "spec": {"export": {"path": path, "name": export}, **more}}


@pytest.fixture
def empty(tmp_path: Any) -> Any:
    made = LoadedFleet(tmp_path / "fleet")
    yield made
    made.close()


def test_an_export_has_one_of_its_name_which_goes_with_it(empty: LoadedFleet) -> None:
    empty.begin(FILES)
    assert empty.get("root:a", SLICES, "widgets")["spec"] == {"export": {"name": "widgets"}}
    skipped = json.loads(widgets.export())
    skipped["metadata"]["annotations"] = {"apiexports.apis.kcp.io/skip-endpointslice": "true"}
    empty.commit({f"{A}/export.json": json.dumps(skipped)})
    assert empty.find("root:a", SLICES, "widgets") is None
    empty.commit({f"{A}/export.json": widgets.export()})
    loaded = empty.commit({f"{A}/export.json": None})
    assert empty.held(loaded) == {} and empty.find("root:a", SLICES, "widgets") is None


def test_one_that_a_file_declares_takes_its_place(empty: LoadedFleet) -> None:
    loaded = empty.begin({**FILES, f"{A}/slice.json": json.dumps(named("widgets", partition="east"))})
    assert empty.held(loaded) == {}
    assert empty.get("root:a", SLICES, "widgets")["spec"]["partition"] == "east"


@pytest.fixture
def fleet(tmp_path: Any) -> Any:
    made = ApiFleet(tmp_path / "fleet")
    made.begin({**FILES, f"{B}/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"})
    made.settle()
    yield made
    made.close()


def shown(fleet: ApiFleet, path: str = "root:a", name: str = "widgets") -> Any:
    return fleet.call("GET", path, f"{PATH}/{name}").json["status"]


def conditions(status: Any) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def test_addresses_come_with_the_first_consumer_and_go_with_the_last(fleet: ApiFleet) -> None:
    assert "endpoints" not in shown(fleet)
    assert conditions(shown(fleet)) == {
        "APIExportValid": ("True", "APIExportValid"),
        "EndpointURLsReady": ("False", "NoConsumers"),
        "PartitionValid": ("True", "PartitionValid"),
    }
    fleet.commit({f"{B}/binding.json": widgets.binding("root:a")})
    fleet.settle()
    cluster = fleet.record("root:a").cluster
    assert shown(fleet)["endpoints"] == [{"url": f"{fleet.fleet().url}/services/apiexport/{cluster}/widgets"}]
    assert conditions(shown(fleet))["EndpointURLsReady"][0] == "True"
    fleet.commit({f"{B}/binding.json": None})
    fleet.settle()
    assert "endpoints" not in shown(fleet)


def test_one_in_another_workspace_names_the_export_by_its_path(fleet: ApiFleet) -> None:
    fleet.commit({f"{B}/slice.json": json.dumps(named("theirs")), f"{B}/none.json": json.dumps(named("none", "nope"))})
    fleet.commit({f"{B}/binding.json": widgets.binding("root:a")})
    fleet.settle()
    assert len(shown(fleet, "root:b", "theirs")["endpoints"]) == 1
    assert conditions(shown(fleet, "root:b", "none"))["APIExportValid"] == ("False", "APIExportNotFound")


def test_a_partition_that_is_not_there_is_told(fleet: ApiFleet) -> None:
    fleet.commit({f"{B}/slice.json": json.dumps(named("theirs", partition="east"))})
    fleet.settle()
    assert conditions(shown(fleet, "root:b", "theirs"))["PartitionValid"] == ("False", "PartitionInvalidReference")
    fleet.commit({f"{B}/east.json": json.dumps({**PARTITION, "spec": {"selector": {}}})})
    fleet.settle()
    assert conditions(shown(fleet, "root:b", "theirs"))["PartitionValid"][0] == "True"
    fleet.commit({f"{B}/east.json": None})
    fleet.settle()
    assert conditions(shown(fleet, "root:b", "theirs"))["PartitionValid"][0] == "False"


def test_a_partition_without_a_shard_has_no_address(fleet: ApiFleet) -> None:
    east = json.dumps({**PARTITION, "spec": {"selector": {"matchLabels": {"region": "east"}}}})
    theirs = json.dumps(named("theirs", partition="east"))
    fleet.commit({f"{B}/slice.json": theirs, f"{B}/east.json": east, f"{B}/binding.json": widgets.binding("root:a")})
    fleet.settle()
    assert "endpoints" not in shown(fleet, "root:b", "theirs")
    assert conditions(shown(fleet, "root:b", "theirs"))["EndpointURLsReady"] == ("False", "NoShards")
    shard = {
        "apiVersion": "core.kcp.io/v1alpha1",
        "kind": "Shard",
        "metadata": {"name": "e", "labels": {"region": "east"}},
    }
    fleet.commit({"workspaces/root/shard.json": json.dumps(shard)})
    fleet.settle()
    assert len(shown(fleet, "root:b", "theirs")["endpoints"]) == 1
    fleet.commit({"workspaces/root/shard.json": None})
    fleet.settle()
    assert "endpoints" not in shown(fleet, "root:b", "theirs")


def test_a_recovery_has_what_was_recorded_of_one(fleet: ApiFleet, tmp_path: Any) -> None:
    fleet.commit({f"{B}/binding.json": widgets.binding("root:a"), f"{B}/slice.json": json.dumps(named("theirs"))})
    fleet.settle()
    fleet.publish()
    new = LoadedFleet(tmp_path / "recovered", repo=fleet.repo, keys=fleet.keys)
    try:
        recorded = new.recorded()
        assert recorded is not None
        new.load(recorded)
        for path, name in (("root:a", "widgets"), ("root:b", "theirs")):
            assert new.get(path, SLICES, name)["status"] == fleet.get(path, SLICES, name)["status"]
            assert new.get(path, SLICES, name)["status"]["endpoints"]
    finally:
        new.close()

"""Who is bound is served with the schema that the binding records, whatever has its name by now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import widgets
from support.apifleet import ApiFleet
from support.labapis import APIS, DECLARED, LAB, WIDGETS, binding, export, lab, put, schema, widget
from support.loadedfleet import LoadedFleet

from apiserver.registry.catalog import Catalog
from apiserver.storage.protocol import Store

NAMED = "apiresourceschemas/v1.widgets.example.io"
DECLARED_WIDGET = "/apis/example.io/v1/namespaces/default/widgets/w"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    with closing(lab(tmp_path / "fleet")) as made:
        yield made


def recorded(fleet: ApiFleet, path: str) -> Any:
    [found] = fleet.call("GET", path, f"{APIS}/apibindings/widgets").json["status"]["boundResources"]
    return found["schema"]


def offer_by_files(fleet: ApiFleet) -> None:
    fleet.commit(
        {
            f"{LAB}/schema.json": widgets.schema(),
            f"{LAB}/export.json": widgets.export(),
            f"{DECLARED}/binding.json": widgets.binding("root:lab"),
            f"{DECLARED}/w.json": widgets.widget(size=1),
        }
    )
    assert not fleet.held()


def test_a_schema_of_the_name_of_one_that_is_kept_is_not_the_consumers(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    before = recorded(fleet, "root:shop")
    for name in ("apiexports/widgets", NAMED):
        assert fleet.call("DELETE", "root:lab", f"{APIS}/{name}").status == 200
    put(fleet, "root:lab", schema(color="string"))
    assert recorded(fleet, "root:shop") == before
    assert fleet.call("POST", "root:shop", f"{WIDGETS}?fieldValidation=Strict", widget(size=1)).status == 201
    put(fleet, "root:shop", binding("root:lab", "again"))
    assert recorded(fleet, "root:shop") == before, "another look finds the same"


def test_a_workspace_that_files_declare_is_not_served_with_what_only_the_store_has(fleet: ApiFleet) -> None:
    offer_by_files(fleet)
    before = recorded(fleet, "root:declared")
    fleet.delete({f"{LAB}/schema.json": None, f"{LAB}/export.json": None})
    assert not fleet.held()
    assert fleet.call("POST", "root:lab", f"{APIS}/apiresourceschemas", schema()).status == 201
    assert fleet.call("GET", "root:declared", DECLARED_WIDGET).status == 200
    fleet.settle()
    fleet.commit({f"{DECLARED}/w.json": widgets.widget(size=2)})
    assert not fleet.held()
    assert fleet.call("GET", "root:declared", DECLARED_WIDGET).json["spec"] == {"size": 2}
    assert recorded(fleet, "root:declared") == before
    recovers(fleet)


def test_an_export_that_a_file_declares_offers_no_schema_that_only_the_store_has(fleet: ApiFleet) -> None:
    offer_by_files(fleet)
    before = recorded(fleet, "root:declared")
    fleet.commit({f"{LAB}/schema.json": None})
    assert fleet.call("POST", "root:lab", f"{APIS}/apiresourceschemas", schema()).status == 201
    fleet.settle()
    fleet.recheck(["root:declared"])
    assert not fleet.held()
    assert recorded(fleet, "root:declared") == before
    assert fleet.call("GET", "root:declared", DECLARED_WIDGET).status == 200
    recovers(fleet)


def recovers(fleet: ApiFleet) -> None:
    """What the declared workspace is served with is what a recovery from the status branch finds."""
    cluster = fleet.record("root:declared").cluster
    fleet.publish()
    with closing(LoadedFleet(fleet.directory.parent / "again", repo=fleet.repo, keys=fleet.keys)) as again:
        again.load(again.recorded())
        assert served(again.store, cluster) == served(fleet.store, cluster)
        kept = [fleet.get("root:declared", "apibindings.apis.kcp.io", "widgets", "")["status"]]
        assert [again.get("root:declared", "apibindings.apis.kcp.io", "widgets", "")["status"]] == kept


def served(store: Store, cluster: str) -> list[tuple[str, bool]]:
    return [(kind.kind, kind.namespaced) for kind in Catalog(store).kinds(cluster).all()]

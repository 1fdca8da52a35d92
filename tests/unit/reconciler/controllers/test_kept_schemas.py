"""Schemas that are kept for consumers end with the last binding that names them, whichever way that goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.apifleet import ApiFleet
from support.labapis import APIS, WIDGETS, binding, export, lab, put, schema, widget

from apiserver.registry.keptschemas import KEPT_SCHEMAS


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    with closing(lab(tmp_path / "fleet")) as made:
        yield made


def take_away(fleet: ApiFleet, *names: str) -> None:
    for name in names:
        assert fleet.call("DELETE", "root:lab", f"{APIS}/{name}").status == 200
    fleet.settle()


ALL = ("apiexports/widgets", "apiresourceschemas/v1.widgets.example.io")


def test_it_ends_with_the_last_binding(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export(), binding("root:lab"))
    put(fleet, "root:shop", binding("root:lab"))
    take_away(fleet, *ALL)
    for path, left in (("root:lab", 1), ("root:shop", 0)):
        assert fleet.store.count(KEPT_SCHEMAS) == 1
        fleet.call("DELETE", path, f"{APIS}/apibindings/widgets")
        fleet.settle()
        assert fleet.store.count(KEPT_SCHEMAS) == left


def test_it_ends_with_the_workspace_of_the_last_binding(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    assert fleet.make("root:lab:one", {"type": {"name": "lab", "path": "root"}}).status == 201
    put(fleet, "root:lab:one", binding("root:lab"))
    take_away(fleet, *ALL)
    assert fleet.store.count(KEPT_SCHEMAS) == 1
    assert fleet.unmake("root:lab:one").status == 200
    fleet.settle()
    assert fleet.store.count(KEPT_SCHEMAS) == 0


def test_it_ends_where_its_consumers_take_another(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    assert fleet.call("POST", "root:shop", WIDGETS, widget()).status == 201
    take_away(fleet, ALL[1])
    assert fleet.store.count(KEPT_SCHEMAS) == 1
    put(fleet, "root:lab", schema(size="integer", color="string"))
    assert fleet.store.count(KEPT_SCHEMAS) == 0
    assert fleet.call("POST", "root:shop", WIDGETS, widget("red", color="red")).json["spec"] == {"color": "red"}


def test_one_that_ends_while_nobody_looks_is_found_at_a_start(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", schema(), export())
    put(fleet, "root:shop", binding("root:lab"))
    take_away(fleet, *ALL)
    fleet.restart(killed=True)
    fleet.call("DELETE", "root:shop", f"{APIS}/apibindings/widgets")
    fleet.settle()
    assert fleet.store.count(KEPT_SCHEMAS) == 0

"""What a provider takes back through the API: who has objects of it keeps what those need, until nothing stands against
it or the export allows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ApiFleet
from support.labapis import APIS, MERGE, WIDGETS, binding, bound, export, lab, put, schema, why, widget

V1, V2 = "v1.widgets.example.io", "v2.widgets.example.io"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ApiFleet]:
    with closing(lab(tmp_path / "fleet")) as made:
        put(made, "root:lab", schema(), export())
        put(made, "root:shop", binding("root:lab"))
        assert made.call("POST", "root:shop", WIDGETS, widget()).status == 201
        yield made


def narrower(name: str = V2, scope: str = "Cluster") -> Any:
    found = schema(name, size="string")
    found["spec"]["scope"] = scope
    return found


def change(fleet: ApiFleet, **metadata: Any) -> None:
    body = {"metadata": metadata, "spec": {"latestResourceSchemas": [V2]}}
    reply = fleet.call("PATCH", "root:lab", f"{APIS}/apiexports/widgets", body, kind=MERGE)
    assert reply.status == 200, reply.message
    fleet.settle()


def told(fleet: ApiFleet) -> str:
    found = fleet.call("GET", "root:shop", f"{APIS}/apibindings/widgets").json["status"]["conditions"]
    return next(str(each["message"]) for each in found if each["type"] == "BindingUpToDate")


def test_who_has_objects_keeps_the_schema_that_they_need(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", narrower())
    change(fleet)
    assert bound(fleet, "root:shop") == ("Bound", [V1])
    assert why(fleet, "root:shop", "BindingUpToDate") == ("False", "APIResourceSchemaInvalid")
    assert why(fleet, "root:shop", "APIExportValid")[0] == "True"
    assert told(fleet) == (
        f"APIExport root:lab:widgets offers {V2} by now, which takes less than {V1} does (v1: .spec.size: was integer, "
        "is string), and there are objects: delete them, or have the export allow it (its annotation "
        f'treeplane.dev/allow-incompatible-schema: "{V1}->{V2}"); it keeps what it is bound to: {V1}'
    )
    assert fleet.call("PATCH", "root:shop", f"{WIDGETS}/w", {"spec": {"size": 2}}, kind=MERGE).status == 200


def test_it_is_taken_once_nothing_stands_against_it(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", narrower())
    assert fleet.call("POST", "root:shop", WIDGETS, widget("other")).status == 201
    change(fleet)
    fleet.call("DELETE", "root:shop", f"{WIDGETS}/other")
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", [V1])
    fleet.restart(killed=False)
    fleet.settle()
    fleet.call("DELETE", "root:shop", f"{WIDGETS}/w")
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", [V2])
    assert why(fleet, "root:shop", "BindingUpToDate")[0] == "True"


def test_what_is_offered_no_more_goes_once_nothing_stands_against_it(fleet: ApiFleet) -> None:
    nothing: Any = {"spec": {"latestResourceSchemas": []}}
    assert fleet.call("PATCH", "root:lab", f"{APIS}/apiexports/widgets", nothing, kind=MERGE).status == 200
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", [V1])
    fleet.call("DELETE", "root:shop", f"{WIDGETS}/w")
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", [])


def test_who_has_no_objects_takes_it(fleet: ApiFleet) -> None:
    fleet.call("DELETE", "root:shop", f"{WIDGETS}/w")
    put(fleet, "root:lab", narrower(scope="Namespaced"))
    change(fleet)
    assert bound(fleet, "root:shop") == ("Bound", [V2])


def test_an_export_may_allow_it(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", narrower())
    change(fleet)
    assert bound(fleet, "root:shop") == ("Bound", [V1])
    change(fleet, annotations={"treeplane.dev/allow-incompatible-schema": f"{V1}->{V2}"})
    assert bound(fleet, "root:shop") == ("Bound", [V2])
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200


def test_no_export_may_put_objects_out_of_reach(fleet: ApiFleet) -> None:
    put(fleet, "root:lab", narrower(scope="Namespaced"))
    change(fleet, annotations={"treeplane.dev/allow-incompatible-schema": f"{V1}->{V2}"})
    assert bound(fleet, "root:shop") == ("Bound", [V1])
    assert "its scope was Cluster, is Namespaced), and there are objects: delete them; it keeps" in told(fleet)
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200


def test_a_schema_that_is_made_anew_under_its_name_is_another(fleet: ApiFleet) -> None:
    assert fleet.call("DELETE", "root:lab", f"{APIS}/apiresourceschemas/{V1}").status == 200
    fleet.settle()
    again = narrower(V1, "Namespaced")
    assert fleet.call("POST", "root:lab", f"{APIS}/apiresourceschemas", again).status == 201
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200, "without a gap"
    fleet.settle()
    assert fleet.call("GET", "root:shop", f"{WIDGETS}/w").status == 200
    assert why(fleet, "root:shop", "BindingUpToDate") == ("False", "APIResourceSchemaInvalid")
    fleet.call("DELETE", "root:shop", f"{WIDGETS}/w")
    fleet.settle()
    assert bound(fleet, "root:shop") == ("Bound", [V1])
    assert why(fleet, "root:shop", "BindingUpToDate")[0] == "True"
    space = WIDGETS.replace("/widgets", "/namespaces/default/widgets")
    assert fleet.call("POST", "root:shop", space, widget(size="large")).status == 201

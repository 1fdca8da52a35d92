"""A provider changes what it offers, or takes it away: what becomes of those who took it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.providing import APP_B, TEXT, D, consume, provide, ready
from support.recoveries import assert_recovers
from support.widgets import binding, export, schema, widget

from apiserver.model.keys import Key
from apiserver.model.storagenames import SCHEMAS
from apiserver.registry.keptschemas import KEPT_SCHEMAS


def bound_to(fleet: LoadedFleet, path: str, name: str = "widgets") -> list[str]:
    status = fleet.get(path, "apibindings.apis.kcp.io", name, "")["status"]
    assert status["phase"] == "Bound"
    return [resource["schema"]["name"].partition(".")[0] for resource in status["boundResources"]]


def up_to_date(fleet: LoadedFleet, path: str, name: str = "widgets") -> str:
    """Why a binding does not have what its export offers; "" if it does."""
    found = fleet.condition(fleet.get(path, "apibindings.apis.kcp.io", name, ""), "BindingUpToDate")
    return "" if found["status"] == "True" else str(found["reason"])


def test_a_providers_change_never_holds_a_consumer(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    before = fleet.get("root:b", "widgets.example.io", "w")
    fleet.commit(TEXT)
    # The consumer's object does not fit the new schema: it keeps the old one, and says so.
    assert fleet.held() == {}
    assert fleet.get("root:b", "widgets.example.io", "w") == before
    assert bound_to(fleet, "root:b") == ["v1"]
    assert up_to_date(fleet, "root:b") == "APIResourceSchemaInvalid"
    assert ready(fleet, "root:b") == ("True", "Ready")
    # It is judged by what it has.
    fleet.commit({f"{B}/x.json": widget(name="x", size=2)})
    assert fleet.held() == {}
    fleet.commit({f"{B}/w.json": widget(size="big"), f"{B}/x.json": widget(name="x", size="small")})
    assert fleet.held() == {}
    assert bound_to(fleet, "root:b") == ["v2"]
    assert up_to_date(fleet, "root:b") == ""
    assert fleet.get("root:b", "widgets.example.io", "w")["spec"] == {"size": "big"}


def test_a_consumer_that_fits_neither_is_told_of_what_is_offered(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    fleet.commit(TEXT)
    fleet.commit({f"{B}/x.json": widget(name="x", size="small")})
    [error] = fleet.held()["root:b"]
    assert error.startswith(f"{B}/w.json:1: Widget w: spec.size: Invalid value")
    assert bound_to(fleet, "root:b") == ["v1"]
    fleet.commit({f"{B}/w.json": None, "treeplane.yaml": fleet.repo.files(fleet.repo.head)["treeplane.yaml"] + "\n"})
    assert fleet.held() == {}
    assert bound_to(fleet, "root:b") == ["v2"]


def test_a_resource_that_an_export_offers_no_more_stays_while_it_has_objects(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), f"{B}/binding.json": binding("root:a")})
    runtime = Key(
        fleet.key("root:b", "widgets.example.io", "w").resource, fleet.record("root:b").cluster, "default", "r"
    )
    fleet.put(runtime, json.loads(widget(name="r")))
    fleet.commit({f"{A}/export.json": export().replace('"v1.widgets.example.io"', "")})
    assert fleet.held() == {}
    assert bound_to(fleet, "root:b") == ["v1"]
    assert fleet.store.get(runtime) is not None


def test_a_schema_that_takes_less_holds_its_provider(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    fleet.commit({f"{A}/v2.json": schema("v2", kind="string"), f"{A}/export.json": export("v2")})
    [error] = fleet.held()["root:a"]
    assert error.startswith(f"{A}/v2.json:1: APIResourceSchema v2.widgets.example.io takes less than v1.widgets")
    assert "v1: .spec.size: was integer, is string" in error
    assert 'treeplane.dev/allow-incompatible-schema: "v1.widgets.example.io->v2.widgets.example.io"' in error
    assert bound_to(fleet, "root:b") == ["v1"]
    fleet.commit({f"{A}/export.json": export("v2", allow="v0->v2")})
    assert set(fleet.held()) == {"root:a"}
    fleet.commit({f"{A}/export.json": export("v2", allow="v1->v2")})
    assert fleet.held() == {}


def test_a_schema_is_not_edited_in_place(fleet: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.commit({**provide(), **consume()})
    stored = fleet.get("root:a", SCHEMAS, "v1.widgets.example.io", "")
    for wider in (schema(kind="number"), schema(field="colour")):
        fleet.commit({f"{A}/schema.json": wider})
        error = next(each for each in fleet.held()["root:a"] if "immutable" in each)
        assert error.startswith(f"{A}/schema.json:1: APIResourceSchema v1.widgets.example.io: spec: Invalid value: ")
        assert error.endswith(
            "field is immutable (leave it as it was, add the new one under another name, "
            "and have the APIExport name that)"
        )
        assert fleet.get("root:a", SCHEMAS, "v1.widgets.example.io", "") == stored
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/v2.json": schema("v2"), f"{A}/export.json": export("v2")})
    assert fleet.held() == {}
    assert bound_to(fleet, "root:b") == ["v2"]
    assert_recovers(fleet, another)


def test_a_schema_may_move_to_another_file_and_be_relabelled(fleet: LoadedFleet) -> None:
    fleet.commit(provide())
    uid = fleet.get("root:a", SCHEMAS, "v1.widgets.example.io", "")["metadata"]["uid"]
    labelled = json.loads(schema())
    labelled["metadata"]["labels"] = {"team": "a"}
    fleet.commit({f"{A}/schema.json": None, f"{A}/moved.json": json.dumps(labelled)})
    assert fleet.held() == {}
    metadata = fleet.get("root:a", SCHEMAS, "v1.widgets.example.io", "")["metadata"]
    assert (metadata["uid"], metadata["labels"]["team"]) == (uid, "a")


def test_a_binding_does_not_take_another_export(fleet: LoadedFleet) -> None:
    other = export().replace('"name": "widgets"', '"name": "others"')
    fleet.commit({**provide(), f"{A}/other.json": other, f"{B}/binding.json": binding("root:a")})
    fleet.commit({f"{B}/binding.json": binding("root:a", wanted="others")})
    [error] = fleet.held()["root:b"]
    assert error.startswith(f"{B}/binding.json:1: APIBinding widgets: spec.reference: Invalid value: ")
    assert "APIExport reference must not be changed (remove the binding in one commit" in error
    assert bound_to(fleet, "root:b") == ["v1"]
    fleet.commit({f"{B}/binding.json": None})
    fleet.commit({f"{B}/binding.json": binding("root:a", wanted="others")})
    assert fleet.held() == {}


def kept(fleet: LoadedFleet) -> set[str]:
    """Names of the schemas that are kept for consumers."""
    return {record.key.namespace for record in fleet.store.scan(KEPT_SCHEMAS).records}


@pytest.mark.parametrize("gone", [{f"{A}/schema.json": None}, {A: None}], ids=["schema", "provider"])
def test_a_schema_is_kept_until_nobody_is_bound_to_it(
    fleet: LoadedFleet, another: Callable[..., LoadedFleet], gone: dict[str, str | None]
) -> None:
    fleet.commit({**provide(), **consume(), f"{D}/workspace.yaml": "", **consume(D)})
    (fleet.commit if A not in gone else fleet.delete)(gone)
    assert kept(fleet) == {"v1.widgets.example.io"}
    fleet.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    assert kept(fleet) == {"v1.widgets.example.io"}
    assert_recovers(fleet, another)
    fleet.delete({D: None})
    assert kept(fleet) == set()
    assert_recovers(fleet, another, "again")


def test_who_is_bound_is_listed_for_as_long(fleet: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.commit({**provide(), **consume()})
    assert fleet.listed() == {"root:b": {("root:a", "widgets")}}
    fleet.commit({f"{B}/binding.json": binding("root:lost"), f"{B}/bad.json": "["})
    # One that is held waits for what it asks for by now, and is served with what it took.
    assert set(fleet.held()) == {"root:b"}
    assert fleet.listed() == {"root:b": {("root:a", "widgets"), ("root:lost", "widgets")}}
    fleet.commit({f"{B}/bad.json": None, f"{B}/binding.json": binding("root:a")})
    assert fleet.held() == {}
    assert fleet.listed() == {"root:b": {("root:a", "widgets")}}
    assert_recovers(fleet, another)
    fleet.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    assert fleet.listed() == {}
    fleet.commit(consume())
    fleet.delete({B: None})
    assert fleet.listed() == {}


def test_a_schema_that_others_are_served_with_never_takes_less(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    fleet.commit({f"{A}/schema.json": None})
    fleet.commit({f"{A}/schema.json": schema(kind="string"), f"{A}/export.json": export("v1", allow="v1->v1")})
    [error] = fleet.held()["root:a"]
    assert "takes less than it did, and others are served with it" in error
    fleet.commit({f"{A}/schema.json": schema(kind="number"), f"{A}/export.json": export("v1")})
    assert fleet.held() == {}
    assert up_to_date(fleet, "root:b") == ""
    fleet.commit({f"{B}/w.json": widget(size=1.5)})
    assert fleet.held() == {}


def test_a_schema_that_is_put_back_is_the_one_that_went(
    fleet: LoadedFleet, another: Callable[..., LoadedFleet]
) -> None:
    """Also for a consumer that is held, whose binding says what it was bound with."""
    fleet.commit({**provide(), **consume()})
    metadata = fleet.get("root:a", SCHEMAS, "v1.widgets.example.io", "")["metadata"]
    fleet.commit({f"{B}/bad.yaml": "kind: ["})
    fleet.delete({f"{A}/schema.json": None, f"{A}/export.json": None})
    fleet.commit(provide())
    assert list(fleet.held()) == ["root:b"]
    again = fleet.get("root:a", SCHEMAS, "v1.widgets.example.io", "")["metadata"]
    assert (again["uid"], again["creationTimestamp"]) == (metadata["uid"], metadata["creationTimestamp"])
    assert_recovers(fleet, another)


def test_a_schema_that_consumers_fit_reaches_them(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    uid = fleet.get("root:b", "widgets.example.io", "w")["metadata"]["uid"]
    fleet.commit({f"{A}/v2.json": schema("v2"), f"{A}/export.json": export("v2"), f"{A}/schema.json": None})
    assert fleet.held() == {}
    bound = fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]["boundResources"]
    assert bound[0]["schema"]["name"] == "v2.widgets.example.io"
    assert fleet.get("root:b", "widgets.example.io", "w")["metadata"]["uid"] == uid


@pytest.mark.parametrize(
    "change",
    [
        {f"{A}/export.json": None},
        {f"{A}/export.json": None, f"{A}/schema.json": None},
        {f"{A}/schema.json": None},
        {A: None},
    ],
    ids=["export", "export and schema", "schema", "workspace"],
)
def test_a_provider_that_takes_its_api_away_breaks_no_consumer(
    fleet: LoadedFleet, change: dict[str, str | None]
) -> None:
    fleet.commit({**provide(), **consume()})
    key = fleet.key("root:b", "widgets.example.io", "w")
    before = fleet.store.get(key)
    (fleet.commit if change.keys() == {f"{A}/schema.json"} else fleet.delete)(change)
    assert fleet.held() == {}
    assert fleet.store.get(key) == before
    # It keeps what it has, follows its own commits, and says what became of its export.
    valid = fleet.condition(fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", ""), "APIExportValid")
    assert valid["status"] == "False"
    assert "it keeps what it is bound to: v1.widgets.example.io" in valid["message"]
    assert bound_to(fleet, "root:b") == ["v1"]
    fleet.commit({f"{B}/w.json": widget(size=2)})
    assert fleet.held() == {}
    assert fleet.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 2}
    fleet.commit({f"{B}/w.json": widget(size="big")})
    assert set(fleet.held()) == {"root:b"}
    fleet.delete({f"{B}/w.json": None, f"{B}/binding.json": None})
    assert "root:b" not in fleet.held()
    assert fleet.store.get(key) is None


def test_an_export_that_is_made_anew_with_another_identity_is_another(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    fleet.delete({A: None})
    shutil.rmtree(fleet.keys / "identities")
    fleet.commit({f"{A}/workspace.yaml": "", **provide()})
    assert fleet.held() == {}
    valid = fleet.condition(fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", ""), "APIExportValid")
    assert "its identity differs" in valid["message"]
    assert bound_to(fleet, "root:b") == ["v1"]
    assert fleet.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 1}


def test_a_provider_that_is_held_serves_its_last_good_export(fleet: LoadedFleet) -> None:
    fleet.commit(provide())
    fleet.commit({f"{A}/export.json": None, f"{A}/bad.yaml": "kind: ["})
    fleet.commit(consume())
    assert set(fleet.held()) == {"root:a"}
    assert ready(fleet, "root:b") == ("True", "Ready")


def test_an_export_that_goes_and_comes_has_another_identity_only_with_another_key(fleet: LoadedFleet) -> None:
    fleet.commit(provide())

    def identity() -> str:
        found: str = fleet.get("root:a", "apiexports.apis.kcp.io", "widgets", "")["status"]["identityHash"]
        return found

    first = identity()
    fleet.commit({f"{A}/export.json": None})
    fleet.commit({f"{A}/export.json": export()})
    assert identity() == first


def test_many_consumers_move_with_their_provider(fleet: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    consumers = [f"workspaces/root/c{i}" for i in range(5)]
    files: dict[str, str | None] = {f"{c}/workspace.yaml": "" for c in consumers}
    for directory in consumers:
        files |= consume(directory)
    fleet.commit({**files, **provide()})
    fleet.commit({f"{A}/v2.json": schema("v2"), f"{A}/export.json": export("v2"), APP_B: configmap(a="c")})
    assert fleet.held() == {}
    for number in range(5):
        bound = fleet.get(f"root:c{number}", "apibindings.apis.kcp.io", "widgets", "")["status"]["boundResources"]
        assert bound[0]["schema"]["name"] == "v2.widgets.example.io"
    other = another(fleet, keys=fleet.keys)
    other.load()
    assert other.held() == {}

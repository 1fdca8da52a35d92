"""A kind in several versions, and what changes of its definition make of objects that are stored already."""

from typing import Any

import orjson
import pytest

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


def schema(**defaults: int) -> dict[str, Any]:
    fields = {name: {"type": "integer", "default": value} for name, value in defaults.items()}
    spec = {"type": "object", "properties": {"mode": {"type": "string"}, **fields}}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}


def definition(**defaults: int) -> dict[str, Any]:
    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": schema(**defaults)},
        {"name": "v1beta1", "served": True, "storage": False, "schema": schema(), "deprecated": True},
    ]
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "w.io", "scope": "Cluster", "names": names, "versions": versions}
    metadata = {"name": "widgets.w.io"}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": metadata, "spec": spec}


def widget(version: str, name: str = "a") -> dict[str, Any]:
    return {"apiVersion": f"w.io/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": {"mode": "x"}}


@pytest.fixture
def served(api: Any, run: Any) -> str:
    """The API group of a target that has the definition with the default size: 1."""
    assert run(api.call("POST", f"{api.EDGE}{CRDS}", definition(size=1))).status == 201
    return f"{api.EDGE}/apis/w.io"


def test_the_storage_version_has_its_defaults_whatever_version_was_written(api: Any, run: Any, served: str) -> None:
    made = run(api.call("POST", f"{served}/v1beta1/widgets", widget("v1beta1")))
    assert (made.status, made.json["spec"]) == (201, {"mode": "x"})
    assert "deprecated" in made.headers["warning"]
    found = run(api.get(f"{served}/v1/widgets/a")).json
    assert (found["apiVersion"], found["spec"]) == ("w.io/v1", {"mode": "x", "size": 1})
    assert run(api.get(f"{served}/v1beta1/widgets/a")).json["apiVersion"] == "w.io/v1beta1"


def test_a_default_that_came_later_is_there_when_an_older_object_is_read(api: Any, run: Any, served: str) -> None:
    made = run(api.call("POST", f"{served}/v1/widgets", widget("v1"))).json
    patch = {"spec": {"versions": definition(size=1, depth=2)["spec"]["versions"]}}
    assert run(api.call("PATCH", f"{api.EDGE}{CRDS}/widgets.w.io", patch, kind=MERGE)).status == 200

    expected = {"mode": "x", "size": 1, "depth": 2}
    read = run(api.get(f"{served}/v1/widgets/a")).json
    assert (read["spec"], read["metadata"]) == (expected, made["metadata"])
    assert [i["spec"] for i in run(api.get(f"{served}/v1/widgets")).json["items"]] == [expected]
    unchanged = run(api.call("PATCH", f"{served}/v1/widgets/a", {}, kind=MERGE)).json
    assert unchanged == read
    changed = run(api.call("PATCH", f"{served}/v1/widgets/a", {"spec": {"size": 3}}, kind=MERGE)).json
    assert (changed["spec"], changed["metadata"]["generation"]) == ({**expected, "size": 3}, 2)


def test_writing_what_is_there_moves_it_to_the_new_storage_version(api: Any, run: Any, served: str) -> None:
    made = run(api.call("POST", f"{served}/v1/widgets", widget("v1"))).json
    both = definition(size=1)["spec"]["versions"]
    versions = [{**v, "storage": v["name"] == "v1beta1", "schema": schema(size=1)} for v in both]
    patch = {"spec": {"versions": versions}}
    assert run(api.call("PATCH", f"{api.EDGE}{CRDS}/widgets.w.io", patch, kind=MERGE)).status == 200

    def stored() -> tuple[str, int]:
        [record] = api.target.scan("widgets.w.io").records
        return orjson.loads(record.value)["apiVersion"], record.revision

    assert stored() == ("w.io/v1", int(made["metadata"]["resourceVersion"]))
    run(api.call("PATCH", f"{served}/v1/widgets/a?dryRun=All", {}, kind=MERGE))
    assert stored()[0] == "w.io/v1"
    moved = run(api.call("PUT", f"{served}/v1/widgets/a", made)).json
    assert stored() == ("w.io/v1beta1", int(moved["metadata"]["resourceVersion"]))
    assert (moved["apiVersion"], moved["metadata"]["generation"]) == ("w.io/v1", 1)
    run(api.call("PUT", f"{served}/v1/widgets/a", moved))
    assert stored()[1] == int(moved["metadata"]["resourceVersion"])

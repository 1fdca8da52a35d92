"""A definition becomes stricter than objects that stand in git: where writes are commits, and where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet
from support.fleetrepo import Files
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.widgets import binding, export, schema, widget

from apiserver.model.errors import StatusError

Object = dict[str, Any]
Another = Callable[..., LoadedFleet]

WIDGETS = "widgets.example.io"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {PROPERTIES}}
"""
LOOSE = CRD.replace(
    "PROPERTIES", "size: {type: string}, colour: {type: string}, list: {type: array, items: {type: string}}"
)
STRICT = CRD.replace(
    "PROPERTIES",
    "size: {type: string, enum: [s, m]}, colour: {type: string}, list: {type: array, items: {type: string, enum: [a]}}",
)
NARROW = CRD.replace("PROPERTIES", "size: {type: string}")
WIDGET = """\
apiVersion: example.io/v1
kind: Widget
metadata: {name: w}
spec:
  size: xxl
  colour: red
"""
FILES: Files = {f"{A}/crd.yaml": LOOSE, f"{A}/w.yaml": WIDGET}
REFUSED = 'spec.size: Unsupported value: "xxl": supported values: "s", "m"'


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[CommitFleet]:
    """root:a serves widgets and has one, and its writes are commits."""
    made = CommitFleet(tmp_path / "fleet")
    made.begin({"treeplane.yaml": WRITES_COMMIT, **FILES})
    made.serve()
    yield made
    made.close()


def problems(held: list[str]) -> list[str]:
    return [text.partition("Widget w: ")[2] for text in held]


def spec(size: str = "xxl", **fields: Any) -> Object:
    return {"spec": {"size": size, "colour": "red", **fields}}


def same_elsewhere(fleet: LoadedFleet, another: Another, name: str = "second") -> None:
    """What a store that is made from the repository has, is what this one has."""
    fleet.publish()
    second = another(fleet, name)
    second.load(second.recorded())
    assert second.held() == fleet.held() == {}
    was, found = fleet.get("root:a", WIDGETS, "w"), second.get("root:a", WIDGETS, "w")
    for obj in (was, found):
        obj["metadata"].pop("resourceVersion")
        obj["metadata"].pop("managedFields", None)
    assert found == was


def test_what_stands_in_git_stays_when_its_definition_becomes_stricter(fleet: CommitFleet, another: Another) -> None:
    definition = fleet.get("root:a", "customresourcedefinitions.apiextensions.k8s.io", "widgets.example.io")
    strict = [{**v, "schema": _schema({"size": {"type": "string", "enum": ["s"]}, "colour": {"type": "string"}})}
              for v in definition["spec"]["versions"]]  # fmt: skip
    fleet.change(
        "root:a",
        "customresourcedefinitions.apiextensions.k8s.io",
        "widgets.example.io",
        spec={**definition["spec"], "versions": strict},
    )
    assert fleet.get("root:a", WIDGETS, "w")["spec"] == spec()["spec"]
    same_elsewhere(fleet, another)


def _schema(properties: Object) -> Object:
    within = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {"openAPIV3Schema": within}


def test_a_push_is_taken_as_well_and_the_rest_may_change(fleet: CommitFleet, another: Another) -> None:
    assert fleet.held(fleet.commit({f"{A}/crd.yaml": STRICT})) == {}
    fleet.change("root:a", WIDGETS, "w", **spec(colour="blue"))
    assert "colour: blue" in fleet.tree()[f"{A}/w.yaml"]
    same_elsewhere(fleet, another)
    assert fleet.held(fleet.commit({f"{A}/w.yaml": WIDGET.replace("red", "green")})) == {}
    same_elsewhere(fleet, another, "third")


def test_what_changes_has_to_pass(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/crd.yaml": STRICT})
    with pytest.raises(StatusError, match='Unsupported value: "xl"'):
        fleet.change("root:a", WIDGETS, "w", **spec("xl"))
    held = fleet.held(fleet.commit({f"{A}/w.yaml": WIDGET.replace("xxl", "xl")}))
    assert problems(held["root:a"]) == [REFUSED.replace("xxl", "xl")]
    assert fleet.held(fleet.commit({f"{A}/w.yaml": WIDGET.replace("xxl", "s")})) == {}
    held = fleet.held(fleet.commit({f"{A}/w.yaml": WIDGET}))
    assert problems(held["root:a"]) == [REFUSED]


def test_what_changes_in_the_same_commit_has_to_pass(fleet: CommitFleet) -> None:
    listed = WIDGET + "  list: [a, b]\n"
    assert fleet.held(fleet.commit({f"{A}/w.yaml": listed})) == {}
    held = fleet.held(fleet.commit({f"{A}/crd.yaml": STRICT, f"{A}/w.yaml": listed.replace("b]", "b, a]")}))
    assert problems(held["root:a"]) == ['spec.list[1]: Unsupported value: "b": supported values: "a"']


def test_a_new_object_has_to_pass(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/crd.yaml": STRICT})
    held = fleet.held(fleet.commit({f"{A}/another.yaml": WIDGET.replace("name: w", "name: another")}))
    assert [text.partition("Widget another: ")[2] for text in held["root:a"]] == [REFUSED]


def test_it_may_move_to_another_file(fleet: CommitFleet, another: Another) -> None:
    fleet.commit({f"{A}/crd.yaml": STRICT})
    assert fleet.held(fleet.commit({f"{A}/w.yaml": None, f"{A}/moved/w.yaml": WIDGET})) == {}
    same_elsewhere(fleet, another)


def test_a_field_that_is_no_longer_known_is_dropped_and_stays_in_its_file(fleet: CommitFleet, another: Another) -> None:
    assert fleet.held(fleet.commit({f"{A}/crd.yaml": NARROW})) == {}
    assert fleet.get("root:a", WIDGETS, "w")["spec"] == {"size": "xxl"}
    same_elsewhere(fleet, another)
    fleet.change("root:a", WIDGETS, "w", spec={"size": "s"})
    assert fleet.tree()[f"{A}/w.yaml"] == WIDGET.replace("xxl", "s")
    same_elsewhere(fleet, another, "third")
    held = fleet.held(fleet.commit({f"{A}/w.yaml": WIDGET + "  shape: round\n"}))
    assert "".join(held["root:a"]).endswith('unknown field "spec.shape" in Widget w')


def test_what_a_default_filled_in_stays_when_the_default_goes(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/crd.yaml": LOOSE.replace("list:", "shape: {type: string, default: round}, list:")})
    assert fleet.get("root:a", WIDGETS, "w")["spec"] == {**spec()["spec"], "shape": "round"}
    fleet.commit({f"{A}/crd.yaml": LOOSE.replace("list:", "shape: {type: string}, list:")})
    assert fleet.get("root:a", WIDGETS, "w")["spec"] == {**spec()["spec"], "shape": "round"}


def test_a_restart_and_a_look_at_everything_change_nothing(fleet: CommitFleet) -> None:
    fleet.commit({f"{A}/crd.yaml": STRICT})
    fleet.committer = fleet.new_committer()
    fleet.load()
    fleet.recheck(["root:a"])
    assert fleet.changes() == []
    assert fleet.held() == {}


def test_a_held_workspace_comes_back_with_what_it_was_served_with(fleet: CommitFleet, another: Another) -> None:
    fleet.commit({f"{A}/crd.yaml": STRICT})
    fleet.commit({f"{A}/bad.yaml": "kind: ConfigMap\n"})
    fleet.publish()
    second = another(fleet)
    second.load(second.recorded())
    assert second.held() == fleet.held()
    assert list(fleet.held()) == ["root:a"]
    assert second.get("root:a", WIDGETS, "w")["spec"] == spec()["spec"]


def test_without_a_past_everything_has_to_pass(fleet: CommitFleet, another: Another) -> None:
    fleet.commit({f"{A}/crd.yaml": STRICT})
    second = another(fleet)
    second.load()
    assert problems(second.held()["root:a"]) == [REFUSED]
    second.publish()
    third = another(fleet, "third")
    third.load(third.recorded())
    assert problems(third.held()["root:a"]) == [REFUSED]


def test_where_people_push_they_hear_of_what_they_leave_behind(empty: LoadedFleet) -> None:
    empty.begin(FILES)
    held = empty.held(empty.commit({f"{A}/crd.yaml": STRICT}))
    assert problems(held["root:a"]) == [REFUSED]
    assert empty.get("root:a", WIDGETS, "w")["spec"] == spec()["spec"]


def test_a_providers_stricter_schema_does_not_reach_who_would_not_fit_it(fleet: CommitFleet, another: Another) -> None:
    """What excuses a workspace's own definition is no reason to take another's: what it was bound with stays."""
    fleet.commit({f"{A}/crd.yaml": None, f"{A}/w.yaml": None})
    fleet.allow()
    provide = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
    fleet.commit({**provide, f"{B}/bind.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    assert fleet.held() == {}
    fleet.commit({f"{A}/v2.json": schema("v2", kind="string"), f"{A}/export.json": export("v2", allow="v1->v2")})
    assert fleet.held() == {}

    def bound(each: LoadedFleet) -> list[str]:
        status = each.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]
        return [resource["schema"]["name"] for resource in status["boundResources"]]

    assert bound(fleet) == ["v1.widgets.example.io"]
    fleet.commit({f"{B}/app.yaml": configmap(a="c")})
    fleet.publish()
    new = another(fleet)
    new.load(new.recorded())
    assert bound(fleet) == bound(new) == ["v1.widgets.example.io"]
    # What it has may change as the schema has it that it keeps.
    fleet.change("root:b", next(k.storage for k in fleet.kinds("root:b") if k.kind == "Widget"), "w", spec={"size": 2})
    # Where nothing stands against it any more, the new one comes.
    fleet.commit({f"{B}/w.json": None})
    assert bound(fleet) == ["v2.widgets.example.io"]

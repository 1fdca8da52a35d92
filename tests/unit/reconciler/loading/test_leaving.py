"""What a commit takes away of definitions waits for the objects of its kinds, and is served until they are gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.following import Following
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers
from support.widgets import binding, crd, export, schema, widget

from apiserver.registry import tree
from apiserver.registry.catalog import BINDINGS, CRDS, KEPT_SCHEMAS, Catalog
from apiserver.storage.protocol import Delete
from reconciler.controllers import housekeeping
from reconciler.controllers.awaited import Awaited
from reconciler.loading import awaited

Object = dict[str, Any]

HELD = ["example.io/hold"]
NAME = "widgets.example.io"
Settle = Callable[[LoadedFleet], None]


@pytest.fixture
def settle() -> Settle:
    """Lets the controllers do all there is to do, and the loader what they ask it for."""

    running: dict[int, Following] = {}

    def go_on(fleet: LoadedFleet) -> None:
        if id(fleet) not in running:
            made = [*housekeeping.controllers(fleet.store, Catalog(fleet.store).kinds), Awaited(fleet.store)]
            running[id(fleet)] = Following.of(fleet.store, *made)
        running[id(fleet)].settle()
        while awaited.waiting(fleet.store):
            awaited.serve(fleet.store, fleet.loader.recheck)
            running[id(fleet)].settle()

    return go_on


def keep(fleet: LoadedFleet, path: str, name: str = "w", *, resource: str = NAME) -> None:
    fleet.update(fleet.key(path, resource, name), lambda obj: obj["metadata"].update(finalizers=HELD))


def let_go(fleet: LoadedFleet, path: str, settle: Settle, name: str = "w", *, resource: str = NAME) -> None:
    """As whoever set the finalizer: the object goes with its last one."""
    settle(fleet)
    fleet.store.write(Delete(fleet.key(path, resource, name))).result()
    settle(fleet)


@pytest.fixture
def defined(fleet: LoadedFleet) -> LoadedFleet:
    """root:a defines Widgets and has one that waits for a finalizer."""
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    keep(fleet, "root:a")
    return fleet


@pytest.fixture
def bound(fleet: LoadedFleet) -> LoadedFleet:
    """root:b binds what root:a offers, and has a Widget that waits for a finalizer."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    keep(fleet, "root:b")
    return fleet


def served(fleet: LoadedFleet, path: str) -> bool:
    return any(kind.kind == "Widget" for kind in fleet.kinds(path))


def test_a_definition_waits_for_its_objects(defined: LoadedFleet, settle: Settle, another: Another) -> None:
    defined.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    assert defined.held() == {}
    definition = defined.get("root:a", CRDS, NAME, "")
    assert definition["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert definition["metadata"]["deletionTimestamp"] == "2026-01-01T00:03:00Z"
    assert definition["metadata"]["annotations"]["treeplane.dev/origin"] == "removed"
    settle(defined)
    assert served(defined, "root:a")
    assert defined.get("root:a", NAME, "w")["metadata"]["deletionTimestamp"]
    new = assert_recovers(defined, another)
    for each in (defined, new):
        let_go(each, "root:a", settle)
        assert not served(each, "root:a")
        assert each.find("root:a", CRDS, NAME, "") is None
        assert tree.summary(each.store, "root:a").get("ending") is None


def test_a_definition_whose_objects_go_at_once_goes_with_them(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    fleet.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    assert fleet.find("root:a", CRDS, NAME, "") is None
    assert not served(fleet, "root:a")


def test_a_binding_waits_for_its_objects(bound: LoadedFleet, settle: Settle, another: Another) -> None:
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    assert bound.held() == {}
    ending = bound.get("root:b", BINDINGS, "widgets", "")
    assert ending["metadata"]["finalizers"] == ["apis.kcp.io/apibinding-finalizer"]
    settle(bound)
    told = bound.condition(bound.get("root:b", BINDINGS, "widgets", ""), "BindingResourceDeleteSuccess")
    assert told["reason"] == "SomeFinalizersRemain"
    new = assert_recovers(bound, another, share=True)
    for each in (bound, new):
        assert served(each, "root:b")
        let_go(each, "root:b", settle)
        assert not served(each, "root:b")
        assert each.find("root:b", BINDINGS, "widgets", "") is None


def test_what_waits_is_served_without_its_provider(bound: LoadedFleet, settle: Settle, another: Another) -> None:
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    bound.delete({f"{A}/schema.json": None, f"{A}/export.json": None})
    assert served(bound, "root:b")
    new = assert_recovers(bound, another, share=True)
    for each in (bound, new):
        assert served(each, "root:b")
        let_go(each, "root:b", settle)
        each.commit({"README.md": "on"}) if each is bound else each.load()
        assert each.store.count(KEPT_SCHEMAS) == 0


def test_no_manifest_builds_on_what_ends(defined: LoadedFleet, settle: Settle) -> None:
    """Whether all of the workspace is judged or what changed."""
    defined.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    defined.commit({f"{A}/other.json": widget(name="other", size=2)})
    assert set(defined.held()) == {"root:a"}
    defined.commit({f"{A}/more.yaml": configmap("more")})
    assert set(defined.held()) == {"root:a"}
    defined.commit({f"{A}/other.json": None})
    assert defined.held() == {}
    assert defined.data("root:a", "more")


def test_a_definition_that_comes_back_is_taken_once_the_old_one_has_gone(
    defined: LoadedFleet, settle: Settle, another: Another
) -> None:
    before = defined.get("root:a", CRDS, NAME, "")["metadata"]["uid"]
    defined.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    defined.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=2)})
    [[error]] = defined.held().values()
    assert f"CustomResourceDefinition {NAME} is being deleted still" in error
    settle(defined)
    assert set(defined.held()) == {"root:a"}
    new = assert_recovers(defined, another)
    for each in (defined, new):
        let_go(each, "root:a", settle)
        assert each.held() == {}
        assert each.get("root:a", CRDS, NAME, "")["metadata"]["uid"] != before
        assert each.get("root:a", NAME, "w")["spec"] == {"size": 2}


def test_the_names_are_free_when_the_last_object_is_gone(bound: LoadedFleet, settle: Settle, another: Another) -> None:
    """Of the one that another definition brings from now on."""
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    bound.commit({f"{B}/crd.json": crd()})
    assert bound.held() == {}
    definition = bound.get("root:b", CRDS, NAME, "")
    assert bound.condition(definition, "NamesAccepted")["status"] == "False"
    settle(bound)
    new = assert_recovers(bound, another, share=True)
    for each in (bound, new):
        let_go(each, "root:b", settle)
        assert each.condition(each.get("root:b", CRDS, NAME, ""), "NamesAccepted")["status"] == "True"
        assert each.find("root:b", BINDINGS, "widgets", "") is None
        assert served(each, "root:b")


def test_another_binding_of_the_same_takes_the_objects_over(bound: LoadedFleet, settle: Settle) -> None:
    bound.commit({f"{B}/binding.json": None, f"{B}/again.json": binding("root:a", "again")})
    assert bound.held() == {}
    assert bound.find("root:b", BINDINGS, "widgets", "") is None
    settle(bound)
    assert bound.get("root:b", BINDINGS, "again", "")["status"]["phase"] == "Bound"
    assert bound.get("root:b", NAME, "w")["spec"] == {"size": 1}
    assert not bound.get("root:b", NAME, "w")["metadata"].get("deletionTimestamp")


def test_an_object_that_git_says_again_is_made_anew_when_it_has_gone(
    fleet: LoadedFleet, settle: Settle, another: Another
) -> None:
    before = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    keep(fleet, "root:a", "app", resource="configmaps")
    fleet.commit({f"{A}/app.yaml": None})
    fleet.commit({f"{A}/app.yaml": configmap(a="again")})
    assert fleet.get("root:a", "configmaps", "app")["metadata"]["deletionTimestamp"]
    new = assert_recovers(fleet, another)
    for each in (fleet, new):
        let_go(each, "root:a", settle, "app", resource="configmaps")
        assert each.data("root:a") == {"a": "again"}
        assert each.get("root:a", "configmaps", "app")["metadata"]["uid"] != before
    assert_recovers(fleet, another, "third")


def test_what_has_gone_is_noticed_after_a_restart(defined: LoadedFleet, settle: Settle, another: Another) -> None:
    defined.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    defined.commit({f"{A}/crd.json": crd()})
    settle(defined)
    defined.store.write(Delete(defined.key("root:a", NAME, "w")), Delete(defined.key("root:a", CRDS, NAME))).result()
    again = Following.of(defined.store, Awaited(defined.store))
    again.settle()
    awaited.serve(defined.store, defined.loader.recheck)
    assert defined.held() == {}
    assert_recovers(defined, another)

"""What a commit takes away of definitions waits for the objects of its kinds, and is served until they are gone."""

from __future__ import annotations

import pytest
from support.following import Following
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers
from support.settling import Settling, keep
from support.widgets import binding, crd, export, schema, widget

from apiserver.model.storagenames import BINDINGS, CRDS
from apiserver.registry import tree
from apiserver.registry.keptschemas import KEPT_SCHEMAS
from apiserver.storage.protocol import Delete
from reconciler.controllers.awaited import Awaited
from reconciler.loading import awaited

NAME = "widgets.example.io"


@pytest.fixture
def settle() -> Settling:
    return Settling()


@pytest.fixture
def defined(fleet: LoadedFleet) -> LoadedFleet:
    """root:a defines Widgets and has one that waits for a finalizer."""
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    keep(fleet, "root:a", "w", NAME)
    return fleet


@pytest.fixture
def bound(fleet: LoadedFleet) -> LoadedFleet:
    """root:b binds what root:a offers, and has a Widget that waits for a finalizer."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    keep(fleet, "root:b", "w", NAME)
    return fleet


def served(fleet: LoadedFleet, path: str) -> bool:
    return any(kind.kind == "Widget" for kind in fleet.kinds(path))


def test_a_definition_waits_for_its_objects(defined: LoadedFleet, settle: Settling, another: Another) -> None:
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
        settle.let_go(each, "root:a", "w", NAME)
        assert not served(each, "root:a")
        assert each.find("root:a", CRDS, NAME, "") is None
        assert tree.summary(each.store, "root:a").get("ending") is None


def test_a_definition_whose_objects_go_at_once_goes_with_them(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    fleet.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    assert fleet.find("root:a", CRDS, NAME, "") is None
    assert not served(fleet, "root:a")


def test_a_binding_waits_for_its_objects(bound: LoadedFleet, settle: Settling, another: Another) -> None:
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
        settle.let_go(each, "root:b", "w", NAME)
        assert not served(each, "root:b")
        assert each.find("root:b", BINDINGS, "widgets", "") is None


def test_what_waits_is_served_without_its_provider(bound: LoadedFleet, settle: Settling, another: Another) -> None:
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    bound.delete({f"{A}/schema.json": None, f"{A}/export.json": None})
    assert served(bound, "root:b")
    new = assert_recovers(bound, another, share=True)
    for each in (bound, new):
        assert served(each, "root:b")
        settle.let_go(each, "root:b", "w", NAME)
        each.commit({"README.md": "on"}) if each is bound else each.load()
        assert each.store.count(KEPT_SCHEMAS) == 0


def test_no_manifest_builds_on_what_ends(defined: LoadedFleet, settle: Settling) -> None:
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
    defined: LoadedFleet, settle: Settling, another: Another
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
        settle.let_go(each, "root:a", "w", NAME)
        assert each.held() == {}
        assert each.get("root:a", CRDS, NAME, "")["metadata"]["uid"] != before
        assert each.get("root:a", NAME, "w")["spec"] == {"size": 2}


def test_the_names_are_free_when_the_last_object_is_gone(
    bound: LoadedFleet, settle: Settling, another: Another
) -> None:
    """Of the one that another definition brings from now on."""
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    bound.commit({f"{B}/crd.json": crd()})
    assert bound.held() == {}
    definition = bound.get("root:b", CRDS, NAME, "")
    assert bound.condition(definition, "NamesAccepted")["status"] == "False"
    settle(bound)
    new = assert_recovers(bound, another, share=True)
    for each in (bound, new):
        settle.let_go(each, "root:b", "w", NAME)
        assert each.condition(each.get("root:b", CRDS, NAME, ""), "NamesAccepted")["status"] == "True"
        assert each.find("root:b", BINDINGS, "widgets", "") is None
        assert served(each, "root:b")


def test_another_binding_of_the_same_takes_the_objects_over(bound: LoadedFleet, settle: Settling) -> None:
    bound.commit({f"{B}/binding.json": None, f"{B}/again.json": binding("root:a", "again")})
    assert bound.held() == {}
    assert bound.find("root:b", BINDINGS, "widgets", "") is None
    settle(bound)
    assert bound.get("root:b", BINDINGS, "again", "")["status"]["phase"] == "Bound"
    assert bound.get("root:b", NAME, "w")["spec"] == {"size": 1}
    assert not bound.get("root:b", NAME, "w")["metadata"].get("deletionTimestamp")


def test_another_binding_that_comes_later_has_what_is_made_from_then_on(bound: LoadedFleet, settle: Settling) -> None:
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    settle(bound)
    bound.commit({f"{B}/again.json": binding("root:a", "again"), f"{B}/new.json": widget(name="new", size=2)})
    assert bound.held() == {}
    settle(bound)
    assert bound.find("root:b", BINDINGS, "widgets", "") is None
    assert not bound.get("root:b", NAME, "new")["metadata"].get("deletionTimestamp")
    settle.let_go(bound, "root:b", "w", NAME)
    assert bound.get("root:b", NAME, "new")["spec"] == {"size": 2}


def test_an_object_that_git_says_again_is_made_anew_when_it_has_gone(
    fleet: LoadedFleet, settle: Settling, another: Another
) -> None:
    before = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    keep(fleet, "root:a", "app", "configmaps")
    fleet.commit({f"{A}/app.yaml": None})
    fleet.commit({f"{A}/app.yaml": configmap(a="again")})
    assert fleet.get("root:a", "configmaps", "app")["metadata"]["deletionTimestamp"]
    new = assert_recovers(fleet, another)
    for each in (fleet, new):
        settle.let_go(each, "root:a", "app", "configmaps")
        assert each.data("root:a") == {"a": "again"}
        assert each.get("root:a", "configmaps", "app")["metadata"]["uid"] != before
    assert_recovers(fleet, another, "third")


def test_an_object_that_git_says_again_is_made_anew_though_its_workspace_is_held(
    fleet: LoadedFleet, settle: Settling, another: Another
) -> None:
    """What is served is what the last good commit says, for a recovery as well."""
    keep(fleet, "root:a", "app", "configmaps")
    uid = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    fleet.commit({f"{A}/app.yaml": None, f"{A}/more.yaml": configmap("more")})
    fleet.commit({f"{A}/app.yaml": configmap(a="anew")})
    fleet.commit({f"{A}/bad.yaml": "kind: [", f"{A}/app.yaml": configmap(a="bad")})
    assert_recovers(fleet, another, "waiting")
    settle.let_go(fleet, "root:a", "app", "configmaps")
    assert set(fleet.held()) == {"root:a"}
    made = fleet.get("root:a", "configmaps", "app")
    assert made["data"] == {"a": "anew"}
    assert made["metadata"]["uid"] != uid
    assert "deletionTimestamp" not in made["metadata"]
    new = assert_recovers(fleet, another, "held")
    fleet.recheck(["root:a"])
    assert fleet.changes() == []
    fleet.commit({f"{A}/bad.yaml": None})
    new.load()
    for each in (fleet, new):
        assert each.data("root:a") == {"a": "bad"}
        assert each.get("root:a", "configmaps", "app")["metadata"]["uid"] == made["metadata"]["uid"]


def test_what_has_gone_is_noticed_after_a_restart(defined: LoadedFleet, settle: Settling, another: Another) -> None:
    defined.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    defined.commit({f"{A}/crd.json": crd()})
    settle(defined)
    defined.store.write(Delete(defined.key("root:a", NAME, "w")), Delete(defined.key("root:a", CRDS, NAME))).result()
    again = Following.of(defined.store, Awaited(defined.store))
    again.settle()
    awaited.serve(defined.store, defined.loader.look_again)
    assert defined.held() == {}
    assert_recovers(defined, another)

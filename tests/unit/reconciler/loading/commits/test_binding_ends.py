"""An APIBinding that is deleted through the API takes its objects along; only then is the kind's name free."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.commitfleet import CommitFleet, a_configmap
from support.following import Following
from support.loadedfleet import A, B, LoadedFleet
from support.recoveries import Another
from support.widgets import binding, crd, export, schema, widget

from apiserver.model import conditions
from apiserver.model.errors import StatusError
from apiserver.registry.catalog import Catalog
from reconciler.controllers.housekeeping import housekeeping

Object = dict[str, Any]

BINDINGS, CRDS = "apibindings.apis.kcp.io", "customresourcedefinitions.apiextensions.k8s.io"
FINALIZER = "apis.kcp.io/apibinding-finalizer"
HELD = ["example.io/hold"]
WAITS = (
    "SomeFinalizersRemain",
    "1 resource instances are remaining, with finalizers: example.io/hold in 1 resource instances",
)
"""Reason and message of the condition once the held Widget is all that is left."""


@pytest.fixture
def bound(fleet: CommitFleet) -> CommitFleet:
    """root:b binds what root:a offers, and has a Widget."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    assert fleet.held() == {}
    return fleet


@pytest.fixture
def keeping(bound: CommitFleet) -> Iterator[Following]:
    made = Following(bound.store, lambda feed: housekeeping(feed, Catalog(bound.store).kinds))
    made.start()
    yield made
    made.stop()


def widgets(fleet: CommitFleet) -> str:
    """Their name in the store."""
    kinds = fleet.loader._catalog.kinds(fleet.record("root:b").cluster)
    found = kinds.by_resource("example.io", "v1", "widgets")
    assert found is not None
    return found.storage


def make(fleet: CommitFleet, name: str, user: str = "alice", **metadata: Any) -> Object:
    obj = json.loads(widget(name=name, size=2))
    return fleet.create("root:b", widgets(fleet), {**obj, "metadata": {"name": name, **metadata}}, user)


def told(fleet: LoadedFleet) -> tuple[str, str, str]:
    status = fleet.get("root:b", BINDINGS, "widgets", "")["status"]
    found = conditions.get(status["conditions"], "BindingResourceDeleteSuccess") or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def gone(fleet: LoadedFleet) -> bool:
    return fleet.find("root:b", BINDINGS, "widgets", "") is None


def test_its_objects_go_first_and_its_file_last(bound: CommitFleet, keeping: Following, eventually: Any) -> None:
    make(bound, "made")
    make(bound, "runtime", user="system:serviceaccount:default:robot")
    assert not bound.remove("root:b", BINDINGS, "widgets").removed
    eventually(lambda: gone(bound))
    assert bound.held() == {}
    assert [path for path in bound.tree() if path.startswith(f"{B}/")] == [f"{B}/app.yaml", f"{B}/workspace.yaml"]
    said = [line for line in bound.log() if line.startswith("treeplane: ")]
    assert len(said) > 1
    assert said[-1] == "treeplane: Delete apibindings.apis.kcp.io widgets in root:b"
    # The name is free: it may be bound, or defined, anew.
    bound.commit({f"{B}/crd.json": crd(), f"{B}/w.json": widget(size=3)})
    assert bound.held() == {}
    assert bound.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 3}


def test_one_that_waits_for_the_names_takes_the_objects_over(
    bound: CommitFleet, keeping: Following, eventually: Any
) -> None:
    made = make(bound, "made")
    bound.commit({f"{B}/later.json": binding("root:a", "zwidgets")})
    assert bound.get("root:b", BINDINGS, "zwidgets", "")["status"]["phase"] == "Binding"
    bound.remove("root:b", BINDINGS, "widgets")
    eventually(lambda: gone(bound))
    assert bound.held() == {}
    assert bound.get("root:b", BINDINGS, "zwidgets", "")["status"]["phase"] == "Bound"
    assert bound.get("root:b", widgets(bound), "made", "default")["metadata"]["uid"] == made["metadata"]["uid"]
    assert f"{B}/w.json" in bound.tree()


def test_finalizers_are_honoured_and_named(bound: CommitFleet, keeping: Following, eventually: Any) -> None:
    make(bound, "held", finalizers=HELD)
    storage = widgets(bound)
    bound.remove("root:b", BINDINGS, "widgets")
    eventually(lambda: told(bound)[1:] == WAITS)
    assert bound.find("root:b", storage, "w", "default") is None
    ending = bound.get("root:b", BINDINGS, "widgets", "")
    assert (ending["metadata"]["finalizers"], bool(ending["metadata"]["deletionTimestamp"])) == ([FINALIZER], True)
    assert bound.get("root:b", storage, "held", "default")["metadata"]["deletionTimestamp"]
    with pytest.raises(StatusError, match="create not allowed while custom resource definition is terminating"):
        make(bound, "late")
    held = bound.get("root:b", storage, "held", "default")
    bound.change("root:b", storage, "held", metadata={**held["metadata"], "finalizers": []})
    eventually(lambda: gone(bound))
    assert f"{B}/binding.json" not in bound.tree()


def test_it_goes_on_after_a_recovery(bound: CommitFleet, keeping: Following, another: Another, eventually: Any) -> None:
    make(bound, "held", finalizers=HELD)
    bound.remove("root:b", BINDINGS, "widgets")
    eventually(lambda: told(bound)[1:] == WAITS)
    bound.publish()
    second = another(bound)
    second.load(second.recorded())
    ending = second.get("root:b", BINDINGS, "widgets", "")
    assert (ending["metadata"]["finalizers"], ending["status"]["phase"]) == ([FINALIZER], "Bound")
    assert (
        ending["metadata"]["deletionTimestamp"]
        == bound.get("root:b", BINDINGS, "widgets", "")["metadata"]["deletionTimestamp"]
    )


def test_one_that_took_nothing_goes_at_once(fleet: CommitFleet) -> None:
    fleet.commit({f"{B}/binding.json": binding("root:nowhere")})
    assert fleet.remove("root:b", BINDINGS, "widgets").removed
    assert f"{B}/binding.json" not in fleet.tree()


def test_what_a_commit_adds_meanwhile_goes_too(bound: CommitFleet, keeping: Following, eventually: Any) -> None:
    make(bound, "held", finalizers=HELD)
    storage = widgets(bound)
    bound.remove("root:b", BINDINGS, "widgets")
    eventually(lambda: told(bound)[1:] == WAITS)
    bound.repo.commit({f"{B}/late.json": widget(name="late", size=4)})
    bound.create("root:b", "configmaps", a_configmap())  # on top of it
    eventually(
        lambda: bound.find("root:b", storage, "late", "default") is None and f"{B}/late.json" not in bound.tree()
    )


def test_a_commit_takes_it_and_all_that_is_its(bound: CommitFleet, keeping: Following, eventually: Any) -> None:
    """As ever: the difference of two commits, in one."""
    make(bound, "runtime", user="system:serviceaccount:default:robot")
    storage = widgets(bound)
    bound.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    assert bound.held() == {}
    assert gone(bound)
    assert [bound.find("root:b", storage, name, "default") for name in ("w", "runtime")] == [None, None]

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.layout.alike import same
from reconciler.plan.gitform import declared_form, sent_form
from reconciler.plan.merge import merged

Object = dict[str, Any]


def test_what_a_server_sets_does_not_enter_git() -> None:
    sent = {
        "status": {},
        "spec": {"a": None, "b": [None, {"c": None, "d": 1}], "e": {}},
        "kind": "A",
        "metadata": {
            "name": "a",
            "generateName": "a-",
            "uid": "x",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": None,
            "managedFields": [],
            "selfLink": "/",
            "deletionTimestamp": "x",
            "deletionGracePeriodSeconds": 0,
            "labels": {},
            "annotations": {
                "treeplane.dev/source-path": "x",
                "treeplane.dev/source-commit": "x",
                "treeplane.dev/origin": "runtime",
                "kcp.io/cluster": "x",
            },
            "finalizers": ["x"],
        },
        "apiVersion": "v1",
    }
    before = copy.deepcopy(sent)
    out = sent_form(sent)
    assert out == {
        "apiVersion": "v1",
        "kind": "A",
        "metadata": {"name": "a", "finalizers": ["x"]},
        "spec": {"b": [None, {"d": 1}], "e": {}},
    }
    assert list(out) == ["apiVersion", "kind", "metadata", "spec"]
    assert sent == before


def test_annotations_of_clients_stay() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}\n", "kcp.io/cluster": "x"}
    out = sent_form({"metadata": {"generateName": "a-", "annotations": annotations}})
    assert out == {
        "metadata": {
            "generateName": "a-",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}\n"},
        }
    }


def test_a_null_that_means_something_stays() -> None:
    sent = {"spec": {"nullable": None, "default": None, "gone": None}, "data": {"a": None}}
    stored = {"spec": {"nullable": None, "default": 1}, "data": {"a": ""}}
    assert sent_form(sent, stored) == {"spec": {"nullable": None}, "data": {"a": ""}}
    assert sent_form(sent) == {"spec": {}, "data": {}}


def container(name: str, **more: Any) -> Object:
    return {"name": name, "image": name, **more}


CASES: dict[str, tuple[Object, Object, Object, Object]] = {
    "nothing": ({"a": 1}, {"a": 1, "d": 2}, {"a": 1, "d": 2}, {"a": 1}),
    "a scalar": ({"a": 1}, {"a": 1, "d": 2}, {"a": 3, "d": 2}, {"a": 3}),
    "a default": ({"a": 1}, {"a": 1, "d": 2}, {"a": 1, "d": 3}, {"a": 1, "d": 3}),
    "a key that goes": ({"a": 1, "b": 1}, {"a": 1, "b": 1}, {"b": 1}, {"b": 1}),
    "other spellings stay": ({"a": "1", "n": None}, {"a": 1}, {"a": 1, "x": 1}, {"a": "1", "x": 1, "n": None}),
    "a map of defaults is taken whole": ({}, {"m": {"a": 1, "b": 2}}, {"m": {"a": 1, "b": 3}}, {"m": {"a": 1, "b": 3}}),
    "others' labels are left alone": (
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a", "uid": "x", "labels": {"other": "x", "y": "1"}}},
        {"metadata": {"name": "a", "uid": "x", "labels": {"other": "x", "y": "2", "z": "3"}}},
        {"metadata": {"name": "a", "labels": {"y": "2", "z": "3"}}},
    ),
    "what servers set is never taken": (
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a", "generation": 1}},
        {"metadata": {"name": "a", "generation": 2}, "status": {"a": 1}},
        {"metadata": {"name": "a"}},
    ),
    "items by name": (
        {"c": [container("b"), container("a")]},
        {"c": [container("b", policy="x"), container("a", policy="x")]},
        {"c": [container("b", policy="x"), {**container("a", policy="x"), "image": "n"}, container("s", policy="x")]},
        {"c": [container("b"), {"name": "a", "image": "n"}, container("s", policy="x")]},
    ),
    "an item that goes": (
        {"c": [container("a"), container("b")]},
        {"c": [container("a", policy="x"), container("b", policy="x")]},
        {"c": [container("b", policy="x")]},
        {"c": [container("b")]},
    ),
    "items whose key has a default": (
        {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
        {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP", "nodePort": 1}]},
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "nodePort": 1}]},
    ),
    "items by position": (
        {"l": [{"x": 1}, {"x": 1}]},
        {"l": [{"x": 1, "d": 0}, {"x": 1, "d": 0}]},
        {"l": [{"x": 1, "d": 0}, {"x": 2, "d": 0}]},
        {"l": [{"x": 1}, {"x": 2}]},
    ),
    "items that nothing tells apart": (
        {"l": [{"x": 1}]},
        {"l": [{"x": 1, "d": 0}]},
        {"l": [{"x": 1, "d": 0}] * 2},
        {"l": [{"x": 1, "d": 0}] * 2},
    ),
    "a list of texts": ({"l": ["a"]}, {"l": ["a"]}, {"l": ["a", "b"]}, {"l": ["a", "b"]}),
    "true is not 1": ({"a": 1}, {"a": 1}, {"a": True}, {"a": True}),
}  # fmt: skip


@pytest.mark.parametrize(("manifest", "live", "final", "expected"), CASES.values(), ids=CASES.keys())
def test_the_difference_enters_the_manifest(manifest: Object, live: Object, final: Object, expected: Object) -> None:
    before = copy.deepcopy((manifest, live, final))
    assert same(declared_form(manifest, live, final), expected)
    assert (manifest, live, final) == before


def render(value: Object) -> Object:
    """Defaults as Kubernetes has them: of fields, of whole maps, of items, and such as another field decides."""
    out = copy.deepcopy(value)
    out.setdefault("metadata", {})
    spec = out.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("whole", {"a": 1, "b": 2})
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "Rolling") == "Rolling":
        rolling = strategy.setdefault("rolling", {})
        rolling.setdefault("surge", 1)
        rolling.setdefault("unavailable", 1)
    for item in spec.get("items", []):
        item.setdefault("protocol", "TCP")
        item.setdefault("policy", "Always" if item.get("image", "x") == "x" else "IfAbsent")
        for port in item.get("ports", []):
            port.setdefault("protocol", "TCP")
    return out


SMALL = st.integers(0, 2)
PORTS = st.fixed_dictionaries({"containerPort": SMALL}, optional={"protocol": st.sampled_from(["TCP", "UDP"])})
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from("ab"),
        "image": st.sampled_from("xy"),
        "policy": st.sampled_from(["Always", "IfAbsent"]),
        "ports": st.lists(PORTS, max_size=2),
    },
)
STRATEGIES = st.one_of(
    st.just({"type": "Recreate"}),
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("Rolling"),
            "rolling": st.fixed_dictionaries({}, optional={"surge": SMALL, "unavailable": SMALL}),
        },
    ),
)
LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), min_size=1, max_size=2)
MANIFESTS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({"name": st.just("a")}, optional={"labels": LABELS}),
        "spec": st.fixed_dictionaries(
            {},
            optional={
                "replicas": SMALL,
                "strategy": STRATEGIES,
                "whole": st.dictionaries(st.sampled_from("abc"), SMALL, max_size=2),
                "items": st.lists(ITEMS, max_size=3),
                "nothing": st.none(),
            },
        ),
    }
)


@given(MANIFESTS, MANIFESTS)
def test_with_its_defaults_it_is_what_was_written(manifest: Object, wanted: Object) -> None:
    live, final = render(manifest), render(wanted)
    assert same(render(declared_form(manifest, live, final, render)), final)


@given(MANIFESTS, MANIFESTS, LABELS)
def test_a_commit_of_it_moves_what_is_stored(manifest: Object, wanted: Object, others: dict[str, str]) -> None:
    """Also where others set labels, which the commit does not take over."""
    live, final = render(manifest), render(wanted)
    for side in (live, final):
        labels = {**others, **side["metadata"].get("labels", {})}
        if labels:
            side["metadata"]["labels"] = labels
    live["status"] = final["status"] = {"seen": 1}
    declared = declared_form(manifest, live, final, render)
    assert same(merged(render(manifest), render(declared), live), final)


@given(MANIFESTS, MANIFESTS)
def test_nothing_changed_is_nothing_written(manifest: Object, other: Object) -> None:
    live = render(other)
    assert declared_form(manifest, live, live) == manifest
    assert declared_form(manifest, render(manifest), render(manifest), render) == manifest


def test_what_another_field_decided_is_written_down() -> None:
    manifest = {"spec": {"items": [{"name": "a", "image": "x"}]}}
    live = render(manifest)
    final = copy.deepcopy(live)
    final["spec"]["items"][0]["image"] = "y"
    expected = {"spec": {"items": [{"name": "a", "image": "y", "policy": "Always"}]}}
    assert declared_form(manifest, live, final, render) == expected


def test_a_part_of_a_map_is_enough_where_its_defaults_fill_the_rest() -> None:
    live = render({"spec": {}})
    final = copy.deepcopy(live)
    final["spec"]["strategy"]["rolling"]["surge"] = 2
    final["spec"]["whole"]["b"] = 3
    expected = {"spec": {"strategy": {"rolling": {"surge": 2}}, "whole": {"a": 1, "b": 3}}}
    assert declared_form({"spec": {}}, live, final, render) == expected


def test_of_what_is_new_no_default_is_written_down() -> None:
    manifest = {"spec": {"items": [{"name": "a"}]}}
    live = render(manifest)
    added = {"name": "b", "image": "y", "ports": [{"containerPort": 1}, {"containerPort": 2, "protocol": "UDP"}]}
    final = render({"spec": {"items": [{"name": "a"}, added]}})
    assert declared_form(manifest, live, final, render) == {"spec": {"items": [{"name": "a"}, added]}}


def test_where_defaults_cannot_be_had_all_that_is_new_is_written_down() -> None:
    manifest = {"spec": {"items": [{"name": "a"}]}}
    live, final = render(manifest), render({"spec": {"items": [{"name": "a"}, {"name": "b"}]}})
    expected = {"spec": {"items": [{"name": "a"}, final["spec"]["items"][1]]}}
    assert declared_form(manifest, live, final, lambda _: None) == declared_form(manifest, live, final) == expected


def test_another_version_is_taken_whole() -> None:
    final = {"kind": "A", "apiVersion": "a/v2", "metadata": {"name": "a", "uid": "x"}, "spec": {"new": 1}}
    expected = {"apiVersion": "a/v2", "kind": "A", "metadata": {"name": "a"}, "spec": {"new": 1}}
    assert declared_form({"apiVersion": "a/v1", "spec": {"old": 1}}, {}, final, render) == expected


def test_what_git_cannot_take_away_does_not_make_it_say_more() -> None:
    manifest = {"metadata": {"name": "a"}, "spec": {"items": [{"name": "a"}]}}
    live = render(manifest)
    final = render({"metadata": {"name": "a"}, "spec": {"replicas": 2, "items": [{"name": "a"}, {"name": "b"}]}})
    live["metadata"]["labels"] = {"other": "x", "more": "x"}
    final["metadata"]["labels"] = {"other": "x"}
    expected = {"metadata": {"name": "a"}, "spec": {"items": [{"name": "a"}, {"name": "b"}], "replicas": 2}}
    assert declared_form(manifest, live, final, render) == expected

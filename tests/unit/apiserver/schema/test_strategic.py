from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.schemas import definitions
from apiserver.schema.strategic import strategic_merge


def merged(resource: str, target: Any, patch: Any) -> Any:
    kind = target_builtins().preferred("apps" if resource == "deployments" else "", resource)
    assert kind is not None
    return strategic_merge(target, patch, kind.source.openapi, definitions())


def pod(*containers: Any, **spec: Any) -> Any:
    return {"spec": {"template": {"spec": {"containers": list(containers), **spec}}}}


def containers(obj: Any) -> Any:
    return obj["spec"]["template"]["spec"]["containers"]


def test_containers_are_merged_by_name() -> None:
    live = pod({"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"})
    patch = pod({"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}, {"name": "c", "image": "3"})
    assert containers(merged("deployments", live, patch)) == [
        {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
        {"name": "c", "image": "3"},
        {"name": "b", "image": "1"},
    ]
    assert containers(live)[0]["image"] == "1", "the live object is not changed"


def test_an_item_is_deleted_by_its_key() -> None:
    live = pod({"name": "a"}, {"name": "b"})
    assert containers(merged("deployments", live, pod({"name": "a", "$patch": "delete"}))) == [{"name": "b"}]
    assert containers(merged("deployments", live, pod({"name": "z", "$patch": "delete"}))) == containers(live)


@pytest.mark.parametrize(
    ("live", "patch", "order", "found"),
    [
        ("a b", "n", None, "n a b"),
        ("a b", "b n", None, "a b n"),
        ("a b", "n b", None, "n a b"),
        ("a b c", "c a", None, "b c a"),
        ("a b c", "b n a", None, "b n a c"),
        ("a b c", "-b n", None, "n a c"),
        ("a b", "m n", None, "m n a b"),
        ("a side", "n", "a n", "a n side"),
        ("a side b", "n", "b a n", "side b a n"),
        ("side a", "n", "n a", "n side a"),
        ("a b c", "", "c a", "b c a"),
        ("a s b t", "n", "a n b", "a n s b t"),
    ],
)
def test_the_order_of_merged_lists_is_that_of_kube_apiserver(
    live: str, patch: str, order: str | None, found: str
) -> None:
    """As a real one of 1.36 answers. `-x`: x is deleted."""
    sent = pod(*({"name": n.lstrip("-"), **({"$patch": "delete"} if n[0] == "-" else {})} for n in patch.split()))
    if order is not None:
        sent["spec"]["template"]["spec"]["$setElementOrder/containers"] = [{"name": n} for n in order.split()]
    made = containers(merged("deployments", pod(*({"name": n} for n in live.split())), sent))
    assert [c["name"] for c in made] == found.split()


def test_atomic_lists_are_replaced() -> None:
    live = pod({"name": "a", "args": ["1", "2"]}, tolerations=[{"key": "x"}])
    patch = pod({"name": "a", "args": ["3"]}, tolerations=[{"key": "y"}])
    made = merged("deployments", live, patch)
    assert containers(made)[0]["args"] == ["3"]
    assert made["spec"]["template"]["spec"]["tolerations"] == [{"key": "y"}]


def test_lists_of_plain_values() -> None:
    live = {"metadata": {"finalizers": ["a/x", "b/x"]}}
    for sent, found in (("b c", "a b c"), ("c", "c a b"), ("b a", "b a"), ("c c d", "c d a b")):
        patch = {"metadata": {"finalizers": [f"{name}/x" for name in sent.split()]}}
        made = merged("configmaps", live, patch)["metadata"]["finalizers"]
        assert made == [f"{name}/x" for name in found.split()]
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"]}}
    assert merged("configmaps", live, gone)["metadata"]["finalizers"] == ["b/x"]


def test_maps_and_nulls() -> None:
    live = {"data": {"a": "1", "b": "2"}}
    assert merged("configmaps", live, {"data": {"a": None, "c": "3", "d": None}})["data"] == {"b": "2", "c": "3"}
    assert merged("configmaps", live, {"data": {"$patch": "replace", "z": "1"}})["data"] == {"z": "1"}
    assert merged("configmaps", live, {"data": {"$patch": "delete"}})["data"] == {}
    assert merged("configmaps", {}, {"data": {"x": None, "y": "1"}, "immutable": None}) == {"data": {"y": "1"}}


def test_retained_keys() -> None:
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert merged("deployments", live, patch) == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "sideways"},
        pod({"image": "x"}),
        pod("x"),
        {"metadata": {"$retainKeys": "x"}},
        {"metadata": {"finalizers": [{}]}},
        {"metadata": {"$setElementOrder/finalizers": "x"}},
    ],
)
def test_what_cannot_be_read(patch: Any) -> None:
    live = {**pod({"name": "a"}), "metadata": {"finalizers": ["a/x"]}}
    with pytest.raises(ValueError, match=r"\w"):
        merged("deployments", live, patch)


NAMES = st.lists(st.sampled_from("abcde"), unique=True, max_size=5)


@st.composite
def container_lists(draw: st.DrawFn) -> list[Any]:
    return [{"name": name, **draw(st.fixed_dictionaries({}, optional={"image": st.sampled_from("12")}))}
            for name in draw(NAMES)]  # fmt: skip


@given(container_lists(), container_lists())
def test_a_patch_twice_is_once(live: list[Any], patch: list[Any]) -> None:
    once = merged("deployments", pod(*live), pod(*patch))
    assert merged("deployments", once, pod(*patch)) == once
    by_name = {c["name"]: c for c in containers(once)}
    sent = [c["name"] for c in patch]
    assert [name for name in by_name if name in sent] == sent
    others = [c["name"] for c in live if c["name"] not in sent]
    assert [name for name in by_name if name not in sent] == others
    for name, found in by_name.items():
        parts = [c for c in [*live, *patch] if c["name"] == name]
        assert found == {k: v for part in parts for k, v in part.items()}


@given(container_lists(), NAMES, NAMES)
def test_deletions_and_order(live: list[Any], gone: list[str], order: list[str]) -> None:
    patch = pod(*({"name": name, "$patch": "delete"} for name in gone))
    patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = [{"name": name} for name in order]
    found = [c["name"] for c in containers(merged("deployments", pod(*live), patch))]
    kept = [c["name"] for c in live if c["name"] not in gone]
    assert sorted(found) == sorted(kept)
    assert [name for name in found if name in order] == [name for name in order if name in kept]
    assert [name for name in found if name not in order] == [name for name in kept if name not in order]


@given(st.lists(st.sampled_from("abc"), unique=True), st.lists(st.sampled_from("abc")), st.sets(st.sampled_from("abc")))
def test_lists_of_plain_values_are_sets(live: list[str], new: list[str], gone: set[str]) -> None:
    patch = {"metadata": {"finalizers": new, "$deleteFromPrimitiveList/finalizers": sorted(gone)}}
    found = merged("configmaps", {"metadata": {"finalizers": live}}, patch)["metadata"]["finalizers"]
    assert set(found) - gone == (set(live) | set(new)) - gone
    assert len(found) == len(set(found))


def test_long_lists_are_not_compared_item_by_item() -> None:
    """Which would take minutes."""
    count = 50_000
    live = pod(*({"name": f"a{i}", "image": "1"} for i in range(count)))
    patch = pod(*({"name": f"a{i}", "image": "2"} for i in range(0, count, 2)))
    backwards = [f"a{i}" for i in reversed(range(count))]
    patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = [{"name": name} for name in backwards]
    found = containers(merged("deployments", live, patch))
    assert [c["name"] for c in found] == backwards
    finalizers = [f"x/{i}" for i in range(count)]
    live = {"metadata": {"finalizers": finalizers}}
    assert merged("configmaps", live, {"metadata": {"finalizers": finalizers}}) == live
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}}
    assert merged("configmaps", live, gone) == {"metadata": {"finalizers": []}}


def test_a_list_of_deletions_that_is_none() -> None:
    with pytest.raises(ValueError, match="not a list"):
        merged("configmaps", {"metadata": {"finalizers": ["a"]}},
               {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}})  # fmt: skip

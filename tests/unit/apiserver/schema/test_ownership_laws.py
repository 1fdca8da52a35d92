"""What holds for any manifests and managers."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apiserver.schema import fieldset
from apiserver.schema.messages import as_json
from apiserver.schema.ownership import ApplyOptions, apply, record_update
from apiserver.schema.structural import Schema

Json = dict[str, Any]
T1, T2, T3 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"

# Never empty: an empty list that is a set or a map is owned by nobody, as in Kubernetes.
TAGS = st.lists(st.sampled_from("abcd"), unique=True, min_size=1, max_size=3)
MAPS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=3)
FREE = st.recursive(
    st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2),
    lambda v: st.dictionaries(st.sampled_from("abc"), v, max_size=3),
    max_leaves=5,
)


def part_of(name: str) -> st.SearchStrategy[Json]:
    optional = {"count": st.integers(0, 2), "kind": st.just("plain")}
    return st.fixed_dictionaries({"name": st.just(name)}, optional=optional)


PARTS = st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3).flatmap(
    lambda names: st.tuples(*map(part_of, names)).map(list)
)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 3),
        "note": st.sampled_from(["x", "y"]),
        "tags": TAGS,
        "atoms": TAGS,
        "labels": MAPS,
        "selector": MAPS,
        "parts": PARTS,
        "free": st.dictionaries(st.sampled_from("abc"), FREE, max_size=3),
    },
)


def manifest(spec: Json | None, manager: str = "") -> Json:
    """With an annotation of the manager's own: who owns nothing at all leaves an object that nobody manages."""
    metadata: Json = {"name": "g", **({"annotations": {manager: "here"}} if manager else {})}
    body = {} if spec is None else {"spec": copy.deepcopy(spec)}
    return {"apiVersion": "z.io/v1", "kind": "Gadget", "metadata": metadata, **body}


def applied(
    live: Json | None, spec: Json | None, schema: Schema, manager: str, now: str = T1, force: bool = True
) -> Json:
    return apply(live, manifest(spec, manager), schema, ApplyOptions(manager, force, "z.io/v1", now))


def bare(obj: Json) -> Any:
    """The object without ownership, and without the empty maps and lists that a removal may leave or take."""

    def trimmed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: t for k, v in value.items() if (t := trimmed(v)) not in ({}, [])}
        return value

    return trimmed({k: v for k, v in obj.items() if k != "metadata"})


def ordered(value: Any) -> Any:
    """Without the order of lists that are sets or maps."""
    if isinstance(value, dict):
        return {k: ordered(v) for k, v in value.items()}
    return sorted((ordered(v) for v in value), key=as_json) if isinstance(value, list) else value


def owned(obj: Json, manager: str) -> frozenset[tuple[str, ...]]:
    entries = obj["metadata"].get("managedFields", [])
    return frozenset(p for e in entries if e["manager"] == manager for p in fieldset.paths(e["fieldsV1"]))


@given(SPECS, SPECS)
def test_apply_twice_is_once(gadget: Schema, first: Json, second: Json) -> None:
    live = applied(None, first, gadget, "other")
    once = applied(live, second, gadget, "me", T2)
    assert applied(once, second, gadget, "me", T3) == once


@given(SPECS, SPECS)
def test_a_sole_owner_gets_what_it_says(gadget: Schema, first: Json, second: Json) -> None:
    after = applied(applied(None, first, gadget, "me"), second, gadget, "me", T2)
    assert ordered(bare(after)) == ordered(bare(manifest(second)))


@given(SPECS, SPECS)
def test_managers_of_different_fields_commute(gadget: Schema, left: Json, right: Json) -> None:
    right = {k: v for k, v in right.items() if k not in left}
    one = applied(applied(None, left, gadget, "a", force=False), right, gadget, "b", force=False)
    two = applied(applied(None, right, gadget, "b", force=False), left, gadget, "a", force=False)
    assert bare(one) == bare(two)
    assert one["metadata"] == two["metadata"]


@given(SPECS, SPECS)
def test_what_i_own_alone_and_drop_disappears(gadget: Schema, mine: Json, theirs: Json) -> None:
    both = applied(applied(None, theirs, gadget, "other"), mine, gadget, "me", T2)
    after = applied(both, None, gadget, "me", T3)
    mark = ("f:metadata", "f:annotations", "f:me")
    assert owned(after, "me") == {mark}
    kept = owned(both, "other")
    assert owned(after, "other") == kept
    alone = {p for p in owned(both, "me") - kept - {mark} if not any(q[: len(p)] == p for q in kept)}
    assert not alone & named(after, gadget)


def named(obj: Json, schema: Schema) -> frozenset[tuple[str, ...]]:
    """All fields of an object's spec."""
    return owned(applied(None, obj.get("spec"), schema, "probe"), "probe")


@given(SPECS, SPECS)
def test_without_force_nothing_of_another_changes(gadget: Schema, theirs: Json, mine: Json) -> None:
    base = applied(None, theirs, gadget, "other")
    try:
        after = applied(base, mine, gadget, "me", T2, force=False)
    except Exception as error:  # a conflict: nothing was done
        assert "conflict" in str(error)
        return
    assert owned(after, "other") == owned(base, "other")


@given(SPECS, SPECS)
def test_an_update_owns_what_it_changed_and_the_rest_stays(gadget: Schema, first: Json, second: Json) -> None:
    live = applied(None, first, gadget, "a")
    new = {**manifest(second), "metadata": copy.deepcopy(live["metadata"])}
    record_update(live, new, gadget, "b", "z.io/v1", T2)
    assert not owned(new, "a") & owned(new, "b")
    assert owned(new, "a") <= owned(live, "a")
    again = copy.deepcopy(new)
    record_update(new, again, gadget, "c", "z.io/v1", T3)
    assert again == new


@given(SPECS, SPECS)
def test_arguments_are_not_changed(gadget: Schema, first: Json, second: Json) -> None:
    live = applied(None, first, gadget, "a")
    patch = manifest(second)
    before = copy.deepcopy((live, patch))
    after = apply(live, patch, gadget, ApplyOptions("b", True, "z.io/v1", T2))
    assert (live, patch) == before
    after["spec"]["labels"] = "changed"
    for value in after["spec"].values():
        if isinstance(value, dict | list):
            value.clear()
    assert (live, patch) == before

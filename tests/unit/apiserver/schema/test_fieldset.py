from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apiserver.schema import fieldset
from apiserver.schema.fieldset import Fields

Paths = frozenset[tuple[str, ...]]
PATHS = st.frozensets(st.lists(st.sampled_from(["f:a", "f:b", 'k:{"n":1}', "v:1"]), min_size=1, max_size=3).map(tuple))


def build(paths: Paths) -> Fields:
    out: Fields = {}
    for path in paths:
        one: Any = fieldset.MEMBER
        for entry in reversed(path):
            one = {entry: one}
        out = fieldset.union(out, one)
    return out


def members(fields: Fields) -> Paths:
    return frozenset(fieldset.paths(fields))


@given(PATHS)
def test_a_set_holds_what_it_was_made_of(paths: Paths) -> None:
    assert members(build(paths)) == paths


@given(PATHS, PATHS)
def test_algebra_is_that_of_sets_of_paths(left: Paths, right: Paths) -> None:
    a, b = build(left), build(right)
    assert members(fieldset.union(a, b)) == left | right
    assert members(fieldset.difference(a, b)) == left - right
    assert members(fieldset.intersection(a, b)) == left & right
    covered = {p for p in left if any(p[: len(q)] == q for q in right)}
    assert members(fieldset.without(a, b)) == left - covered
    assert (members(a), members(b)) == (left, right)


@given(PATHS)
def test_empty_sets_are_empty(paths: Paths) -> None:
    a = build(paths)
    assert fieldset.difference(a, a) == {}
    assert fieldset.union(a, {}) == a
    assert fieldset.canonical(fieldset.canonical(a)) == fieldset.canonical(a)


def test_paths_as_conflicts_show_them() -> None:
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', "f:tags", 'v:"x"')
    assert fieldset.shown(path) == '.spec.ports[containerPort=80,protocol="TCP"].tags[="x"]'


def test_foreign_keys_are_made_canonical() -> None:
    assert fieldset.canonical({'k:{"b": 1, "a": 2}': {}}) == {'k:{"a":2,"b":1}': {}}


def test_paths_name_what_stands_deeper_last() -> None:
    fields = {"f:spec": {"f:a": {"f:deep": {}}, "f:b": {}, "f:c": {".": {}, "f:deep": {}}}}
    shown = [fieldset.shown(path) for path in fieldset.paths(fields)]
    assert shown == [".spec.b", ".spec.c", ".spec.a.deep", ".spec.c.deep"]

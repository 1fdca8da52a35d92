"""Files that differ in texts between quotes say what reading each of them says."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.layout import shapes
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.shapes import Shapes

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"
LINES = [
    "data: {number: '%'}",
    "data: {number: \"%\", other: '%'}",
    "data:\n  a: '%'\n  b: \"%\"",
    "data: {'%': one, two: '%'}",
    "data: {'%': one, '%': two}",
    "spec: ['%', {deep: ['%']}, \"%\"]",
    "list:\n- '%'\n- a: '%'\n  b: x",
    "# it's '%' here",
    "x: |\n  say '%' here",
    "y: it's '%'",
    "z: '%'%'",
    "z: '%''%'",
    "w: \"\\'%'\"",
    "v: '%' # '%'",
    "folded: '%\n  %'",
    'multi: "%\n\n  %"',
    "tagged: !!str '%'",
    "int: !!int '%'",
    "anchor: &a '%'\nsame: *a",
    "merged: {<<: {a: '%'}, a: '%'}",
    "? '%'\n: '%'",
    "? {a: '%'}\n: b",
    "'%': '%'",
    "status: {phase: '%'}",
    "metadata: {name: '%'}",
    "kind: '%'",
    "items: ['%', {kind: '%'}]",
    "annotations: {a: '%'}",
    "---\n" + HEAD + "data: {number: '%'}",
    "---",
    "...",
    "%% '%'",
    "unclosed: '%",
    "flow: ['%', ",
    "\tx: '%'",
    "nul: '\0'",
    "apiVersion: '%'\nkind: '%'\nmetadata: {name: '%', namespace: '%', labels: {a: '%'}}\ndata: {number: '%'}",
    "kind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: '%'}, data: {a: '%'}}]",
]
heads = st.sampled_from([HEAD, HEAD, HEAD, "", "apiVersion: v1\nkind: List\nmetadata: {name: l}\n"])
lines = st.lists(st.sampled_from(LINES), max_size=4)
forms = st.builds(lambda head, some: head + "".join(f"{line}\n" for line in some), heads, lines)
NUMBERS = ["1", "0x1F", "1e3", "true", "null", "y", "-", "--", ".", "...", "---"]
WORDS = [*NUMBERS, "a", "/", "a/b", "a" * 64, "a" * 65, "v1", "List", "é", "", "a b"]
texts = st.sampled_from(WORDS) | st.text("abcXYZ019._/-", min_size=1, max_size=9)


def file(form: str, said: list[str]) -> bytes:
    """With texts put in, in turn."""
    parts = form.split("%")
    out = [parts[0]]
    for number, part in enumerate(parts[1:]):
        out += (said[number % len(said)], part)
    return "".join(out).encode()


def told(found: tuple[Manifest, ...] | list[Manifest]) -> list[tuple[object, ...]]:
    return [(m.origin, m.index, m.line, m.gvk, m.namespace, m.name, m.value, list(m.value)) for m in found]


@given(forms, st.lists(st.lists(texts, min_size=1, max_size=6), min_size=4, max_size=6))
@example(HEAD + LINES[0] + "\n", [["1"], ["2"], ["3"], ["4"]])
@example(HEAD + LINES[3] + "\n", [["a", "1"], ["a", "2"], ["a", "3"], ["b", "two"], ["two", "4"]])
def test_what_is_known_of_others_is_what_reading_says(form: str, files: list[list[str]]) -> None:
    known = Shapes()
    for said in files:
        data = file(form, said)
        for _ in range(3):
            found, there = known.read(data, "a/x.yaml"), read(data, "a/x.yaml")
            if found is not None:
                assert there.errors == []
                assert told(found.manifests) == told(there.objects)


def test_the_third_that_differs_in_a_text_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    known, form = Shapes(), HEAD + "data: {number: '%', other: \"%\"}\n"
    found = [known.read(file(form, [str(n), "x"]), "a.yaml") for n in range(6)]
    assert [each is not None for each in found] == [False, False, True, True, True, True]
    monkeypatch.setattr(shapes, "read", None)
    said = known.read(file(form, ["7", "seven"]), "b.yaml")
    assert said is not None
    assert said.manifests[0].value["data"] == {"number": "7", "other": "seven"}
    assert said.manifests[0].path == "b.yaml"


@pytest.mark.parametrize("form", ["kind: '%'\napiVersion: v1\nmetadata: {name: a}\ndata: {a: b}", HEAD + "x: it's '%'"])
def test_what_says_which_object_it_is_and_what_is_part_of_a_text_is_read(form: str) -> None:
    known = Shapes()
    assert all(known.read(file(form, [f"A{n}"]), "a.yaml") is None for n in range(6))


def test_json_is_read() -> None:
    known = Shapes()
    assert all(known.read(file('{"a": "%"}', [f"A{n}"]), "a.json") is None for n in range(6))

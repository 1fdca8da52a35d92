"""Values that need no care are written as the YAML library writes them, and all others by that itself."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.statusbranch.format import dump, load
from reconciler.statusbranch.plainform import WIDTH, dumped

SPECIAL = [
    "", "~", "null", "true", "yes", "No", "on", "1", "1.5", "1e3", "0x1f", "0b1", "0o7", "1_000", "+1", "190:20:30",
    ".inf", ".nan", "=", "<<", "---", "...", "2026-11-26", "2026-11-26T13:38:50Z", "12:30", "a: b", "a #b", "a:", "a ",
    " a", "-", "- a", "? a", "*x", "&x", "!x", "@x", "%x", "{a}", "[a]", "it's", 'a "b"', "a\\b", "é", "two\nlines",
    "Is available.",
]  # fmt: skip
PLAIN = st.sampled_from(["f:data", ".", "kubectl-create", "a b", "Ready", "web-1", "10Gi", "1.2.3", "a,b", "x" * 20])
JSON = st.one_of(
    st.builds(lambda owners: orjson.dumps(owners).decode(), st.lists(st.dictionaries(PLAIN, PLAIN, max_size=9))),
    st.text([chr(each) for each in range(ord("!"), 127) if chr(each) != "'"], max_size=200).map("[{}".__add__),
)
ANY = st.one_of(st.sampled_from(SPECIAL), st.text("abz019_./:+,()=%@;*&!|<>~[]{}- #'\"?\\", max_size=12))


def library(value: object) -> bytes:
    out: bytes = yaml.dump(
        value, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True, encoding="utf-8", width=WIDTH
    )
    return out


def values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), texts)
    inner = st.recursive(
        scalars, lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(texts, below, max_size=3))
    )
    return st.dictionaries(texts, inner, max_size=4)


@settings(max_examples=300, deadline=None)
@given(value=values(PLAIN))
def test_what_needs_no_care_is_written_as_the_library_writes_it(value: dict[str, Any]) -> None:
    assert dumped(value) == library(value)


@settings(max_examples=300, deadline=None)
@given(value=values(st.one_of(PLAIN, ANY, JSON)))
def test_whatever_is_written_is_what_the_library_writes(value: dict[str, Any]) -> None:
    assert dump(value) == library(value)
    assert load(dump(value)) == value


@settings(max_examples=300, deadline=None)
@given(text=JSON)
def test_json_without_spaces_is_written_as_the_library_writes_it(text: str) -> None:
    value = {"fieldOwners": text, "a": [text, {"b": text}]}
    assert " " in text or dumped(value) is not None
    assert dump(value) == library(value)


@pytest.mark.parametrize("text", SPECIAL)
def test_a_text_stands_as_the_library_has_it(text: str) -> None:
    for value in ({"a": text}, {text: 1}, {"a": [text, {text: text}]}):
        assert dump(value) == library(value)


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1.5},
        {"a": "x" * WIDTH + "x"},
        {"a": "it's"},
        {"a": "two\nlines"},
        {"k" * 130: 1},
        {"a": {1: 2}},
        {"a": "é"},
    ],
)
def test_what_needs_care_is_the_librarys(value: dict[str, Any]) -> None:
    assert dumped(value) is None


def test_a_text_that_would_be_folded_is_the_librarys() -> None:
    for length in range(100, 130):
        value = {"status": {"conditions": [{"message": ("word " * 30)[:length].strip()}]}}
        assert dump(value) == library(value)

"""What is known of a new file without reading it is what its reader finds in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.layout import edit
from reconciler.layout.alike import same
from reconciler.layout.dump import dump
from reconciler.layout.readback import known
from reconciler.layout.yamldoc import roots

Object = dict[str, Any]

WORDS = ["on", "~", "", "1e3", "0o7", "0777", "1_0", "12:30:45", "2020-01-01", ".inf", "=", "- a", "---", "--- x",
         "...", "? a", ": a", "a: b", "a #b", "{a", "'", '"', "it's", 'say "x"', "\\", " lead", "trail ", "a\nb",
         "a\nb\n", "a\n\n\nb\n\n", "\na", "\n\n", " a\n b\n", "a\n  \nb", "a\n  ", "#!\n# c\n",
         "--- a\n--- b\n"]  # fmt: skip
SIGNS = st.text("\n -:#'\"\\|>?,[]{}%@`~=.+0123456789aexnoyEtT_", max_size=12)
TEXTS = st.one_of(st.sampled_from(WORDS), SIGNS, st.text(st.characters(min_codepoint=9, max_codepoint=130), max_size=8))
SCALARS = st.one_of(TEXTS, st.integers(), st.floats(), st.booleans(), st.none())
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3))
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3))
def test_what_is_known_is_what_is_read(value: Object) -> None:
    try:
        data = dump(value)
    except ValueError:  # endless numbers and half characters
        return
    said = known(data, value)
    if said is not None:
        [found] = roots(data, "a.yaml")
        assert same(said, found.value)
        assert list(map(repr, _flat(said))) == list(map(repr, _flat(value)))
        assert found.line == 1


def test_an_ordinary_object_is_known_and_shares_nothing() -> None:
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b: c\n", "n": "1"}}
    data, document = edit.new("a.yaml", value)
    assert known(data, value) == document.value == value
    document.value["data"]["a"] = "other"
    assert value["data"]["a"] == "b: c\n"  # type: ignore[index]


@pytest.mark.parametrize(
    "value", [{"a": "é"}, {"a": "\t"}, {"a": 1.5}, {"a": 1 << 60}, {"é": "a"}, {"a": "&x"}, {"a": "x" * 65536}, {"": 1}]
)
def test_anything_else_is_read_back(value: Object) -> None:
    data, document = edit.new("a.yaml", value)
    assert known(data, value) is None
    assert same(document.value, value)


def _flat(value: Any) -> list[Any]:
    """Scalars and keys: not what types compare as, but what they are."""
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in (key, *_flat(inner))]
    return [each for item in value for each in _flat(item)] if isinstance(value, list) else [value]

"""Edits of files against a model: whatever the file, the objects change as asked and nothing else does."""

from __future__ import annotations

import re
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from reconciler.layout import manifest
from reconciler.layout.alike import same
from reconciler.layout.edit import add, dump, remove, replace
from reconciler.layout.quoting import as_json
from reconciler.layout.yamldoc import parse

Object = dict[str, Any]

WORDS = ["on", "yes", "n", "null", "~", "", "1e3", "0o7", "0777", "0x1F", "1_000", "12:30:45", "2020-01-01", ".inf",
         "=", "<<", "- a", "-", "---", "--- x", "...", "? a", ": a", "a: b", "a #b", "a:", "#a", "!a", "&a", "*a",
         "@a", "`a", "%a", "{a", "[a", "a, b", "a]", "'", '"', "it's", 'say "x"', "\\", " lead", "trail ", "\ttab",
         "a\nb", "a\nb\n", "a\n\n\nb\n\n", "\na", "\n", "\n\n", " a\n b\n", "\ta\nb", "a\n  \nb", "a\n  ", "  \n a\n",
         "a\r\nb", "a\rb", "a\u0085b", "a\u2028b\nc", "\ufeffa", "\x00", "\x7f", "é😀", "a\u00a0", "\ue000\nb\n",
         "#!\n# c\ne\n", "--- a\n--- b\n", "+.5", "1.", "-0", "0b1", "190:20:30", "a\tb", "x" * 99]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(WORDS), st.text(max_size=8), st.text(" \n\t#:-a", max_size=8))
NUMBERS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 3)
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none())
NAMES = st.one_of(st.sampled_from([*"abcdefgh", "name", "on", "1", "a.b/c"]), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(NAMES, inner, max_size=4),
        st.lists(st.builds(lambda n, v: {"name": n, "value": v}, st.sampled_from("abcd"), inner), max_size=4),
    ),
    max_leaves=12,
)


@st.composite
def objects(draw: st.DrawFn) -> Object:
    value: Object = {"apiVersion": "v1", "kind": "A", "metadata": {"name": draw(st.sampled_from("abc"))}}
    labels = draw(st.one_of(st.none(), st.dictionaries(NAMES, TEXTS, min_size=1, max_size=3)))
    if labels:
        value["metadata"]["labels"] = labels
    for part in draw(st.lists(st.sampled_from(["spec", "data", "rules"]), unique=True)):
        value[part] = draw(VALUES)
    return value


def read(data: bytes, path: str = "a.yaml") -> list[Object]:
    found = manifest.read(data, path)
    assert found.errors == []
    return [m.value for m in found.objects]


COMMENTS = st.sampled_from(["", "", "# above\n", "\n", "\n# apart\n\n"])


@st.composite
def files(draw: st.DrawFn, *, sizes: tuple[int, int] = (1, 3)) -> tuple[bytes, str]:
    """A file as people leave them: several documents, comments, other spellings, with or without a last line break."""
    path = draw(st.sampled_from(["a.yaml", "a.yaml", "a.yaml", "a.json"]))
    several = draw(st.lists(objects(), min_size=sizes[0], max_size=sizes[1]))
    if draw(st.integers(0, 5)) == 0:
        several = [{"apiVersion": "v1", "kind": "List", "items": several}]
    if path == "a.json":
        indent = draw(st.sampled_from([0, orjson.OPT_INDENT_2]))
        return b"\n".join(orjson.dumps(value, option=indent) for value in several), path
    marks = [draw(st.sampled_from(["", "---\n", "# head\n", "# head\n\n"]))]
    text = ""
    for number, value in enumerate(several):
        text += marks[0] if not number else "---\n"
        text += draw(COMMENTS) + draw(spelled(value))
        text += draw(st.sampled_from(["", "", "\n", "# end\n", "\n# apart\n", "...\n"]))
    if draw(st.integers(0, 4)) == 0:
        text = text.rstrip("\n")
    if draw(st.integers(0, 4)) == 0:
        text = text.replace("\n", "\r\n")
    return text.encode(), path


@st.composite
def spelled(draw: st.DrawFn, value: Object) -> str:
    """A document that means this value, or nearly so, with comments and in a style of one's own."""
    how = draw(st.integers(0, 5))
    if how == 0:
        return as_json(value) + "\n"
    lines = dump(value).decode().splitlines(keepends=True)
    if how == 1 or any("|" in line for line in lines):
        return "".join(lines)
    out: list[str] = []
    for line in lines:
        if draw(st.integers(0, 3)) == 0:
            out.append(" " * (len(line) - len(line.lstrip())) + f"# c{len(out)}\n")
        if how == 2 and (found := re.match(r"( *)(\w+): ([a-z]+)\n", line)):
            line = f"{found[1]}{found[2]}:   '{found[3]}'   # t{len(out)}\n"
        out.append(line)
    return "".join(out)


@given(objects())
def test_what_is_written_reads_back(value: Object) -> None:
    data = dump(value)
    (found,) = parse(data, "a.yaml")
    assert same(found.value, value)
    assert same(read(add(None, "a.yaml", value)), [value])
    assert same(read(add(None, "a.json", value), "a.json"), [value])


@given(files(sizes=(0, 3)), objects())
def test_add(file: tuple[bytes, str], value: Object) -> None:
    data, path = file
    after = add(data, path, value)
    assert same(read(after, path), [*read(data, path), value])


@st.composite
def changes(draw: st.DrawFn, value: Any) -> Any:
    """A value that shares most with another."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        out = {**value, key: draw(changes(value[key]))}
        if draw(st.integers(0, 2)) == 0:
            out[draw(NAMES)] = draw(VALUES)
        if draw(st.integers(0, 2)) == 0:
            del out[draw(st.sampled_from(sorted(value)))]
        return out
    if isinstance(value, list) and value and draw(st.booleans()):
        at = draw(st.integers(0, len(value) - 1))
        out = [*value[:at], draw(changes(value[at])), *value[at + 1 :]]
        if draw(st.integers(0, 2)) == 0:
            out.insert(draw(st.integers(0, len(out))), draw(VALUES))
        if draw(st.integers(0, 2)) == 0:
            del out[draw(st.integers(0, len(out) - 1))]
        return out
    return draw(VALUES)


@given(files(), st.data())
def test_replace(file: tuple[bytes, str], data: st.DataObject) -> None:
    text, path = file
    before = read(text, path)
    index = data.draw(st.integers(0, len(before) - 1))
    assert replace(text, path, index, before[index]) == text
    spec = data.draw(changes(before[index].get("spec", {})))
    value = {**before[index], "spec": spec}
    after = replace(text, path, index, value)
    assert same(read(after, path), [*before[:index], value, *before[index + 1 :]])
    documents = [part for part in re.split(rb"(?m)^---\s", text) if parse(part, path)]
    if len(documents) == len(before) > 1:
        assert all(part in after for number, part in enumerate(documents) if number != index)


@given(files().filter(lambda f: f[0].endswith(b"\n") and b"{" not in f[0]), st.data())
def test_lines_that_do_not_change_survive(file: tuple[bytes, str], data: st.DataObject) -> None:
    text, path = file
    before = read(text, path)
    index = data.draw(st.integers(0, len(before) - 1))
    value = {**before[index], "added": data.draw(VALUES)}
    lines = iter(replace(text, path, index, value).splitlines())
    assert all(line in lines for line in text.splitlines())


@given(files(), st.data())
def test_remove(file: tuple[bytes, str], data: st.DataObject) -> None:
    text, path = file
    before = read(text, path)
    index = data.draw(st.integers(0, len(before) - 1))
    after = remove(text, path, index)
    left = [*before[:index], *before[index + 1 :]]
    assert (after is None) == (not left)
    assert after is None or same(read(after, path), left)

"""What kubectl makes of YAML, as a table: text of `v:` → value, or a part of the error."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest

from reconciler.layout.errors import BadFile
from reconciler.layout.yamldoc import LIMIT, YamlDocument, locate, parse

VALUES: list[tuple[str, Any]] = [
    # booleans of YAML 1.1, in the spellings that kubectl takes
    *[(word, True) for word in ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")],
    *[(word, False) for word in ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")],
    *[(word, word) for word in ("tRUE", "yEs", "oN", "nO", "t", "f")],
    *[(word, None) for word in ("", "~", "null", "Null", "NULL")],
    ("nULL", "nULL"),
    # integers, in Go's literals
    ("5", 5),
    ("+5", 5),
    ("-0", 0),
    ("0", 0),
    ("0777", 511),
    ("-0777", -511),
    ("0644", 420),
    ("089", 89),
    ("0o17", 15),
    ("0O17", 15),
    ("0b101", 5),
    ("-0b101", -5),
    ("0x1F", 31),
    ("0XfF", 255),
    ("1_000", 1000),
    ("_1", "_1"),
    ("0x", "0x"),
    ("0xZ", "0xZ"),
    ("0b12", "0b12"),
    ("9223372036854775807", 9223372036854775807),
    ("-9223372036854775808", -9223372036854775808),
    ("9223372036854775808", 9223372036854775808.0),
    ("18446744073709551615", 18446744073709551615.0),
    ("123456789012345678901234567890", 1.2345678901234568e29),
    ("0x1FFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFF"),
    # floats: whole ones are integers once they went through JSON
    ("1.0", 1),
    ("1.", 1),
    (".5", 0.5),
    ("-.5", -0.5),
    ("1.20", 1.2),
    ("123456789.123456789", 123456789.12345679),
    ("1e3", 1000),
    ("1.5e+3", 1500),
    ("1234567890123456789e2", 123456789012345680000.0),
    ("1234567890123456789.0", 1234567890123456800),
    ("-0.0", 0),
    ("12e45678", "12e45678"),
    ("1234e5678", "1234e5678"),
    ("1.2.3", "1.2.3"),
    ("+", "+"),
    (".", "."),
    ("+-1", "+-1"),
    ("1 2", "1 2"),
    # no base 60, no dates
    ("1:30", "1:30"),
    ("12:30:45", "12:30:45"),
    ("2020-01-01", "2020-01-01"),
    ("2020-01-01T10:00:00Z", "2020-01-01T10:00:00Z"),
    ("2001-12-14 21:59:43.10 -5", "2001-12-14 21:59:43.10 -5"),
    # text
    ("=", "="),
    ("25%", "25%"),
    ("a:b", "a:b"),
    ("http://x:80/y", "http://x:80/y"),
    ("a#b # c", "a#b"),
    ("'it''s'", "it's"),
    ('"yes"', "yes"),
    ("'1'", "1"),
    ('"@x"', "@x"),
    ('"*"', "*"),
    ('"a\\u00e9\\n\\x41"', "aé\nA"),
    ('"\U0001f600"', "\U0001f600"),
    ('"a\u00a0b"', "a\u00a0b"),
    ("|2\n    x", "  x\n"),
    ("|+\n    a\n", "a\n\n"),
    (">-\n    a\n    b\n\n    c", "a b\nc"),
    ("|\n    x\n    \ty", "x\n\ty\n"),
    # tags
    ('!!int "12"', 12),
    ("!!float 12", 12),
    ("!!float 1.5", 1.5),
    ("!!str 123", "123"),
    ("!!str", ""),
    ("!!bool yes", True),
    ("!!null ''", None),
    ("!!binary aGVsbG8=", "hello"),
    ("!!timestamp 2020-01-01", "2020-01-01"),
    ("!foo bar", "bar"),
    ("!foo 12", "12"),
    ("!!set {a, b}", {"a": None, "b": None}),
    ("!!python/object/apply:os.getcwd []", []),
    # collections
    ("{}", {}),
    ("[]", []),
    ('{"a":1,"b":[true,null]}', {"a": 1, "b": [True, None]}),
    ('{"a":"b","c":{"d":1}}', {"a": "b", "c": {"d": 1}}),
    ("\tb", "b"),
    # keys
    ("{1: a}", {"1": "a"}),
    ("{1.5: a}", {"1.5": "a"}),
    ("{1.0: a}", {"1": "a"}),
    ("{true: a}", {"true": "a"}),
    ("{on: a}", {"true": "a"}),
    ("{y: a}", {"true": "a"}),
    ("{0x10: a}", {"16": "a"}),
    ("{'<<': a}", {"<<": "a"}),
    # aliases and merge keys, which take effect where they stand
    ("[&x {p: 1}, *x]", [{"p": 1}, {"p": 1}]),
    ("[&x {p: 1, q: 2}, {<<: *x, q: 3}]", [{"p": 1, "q": 2}, {"p": 1, "q": 3}]),
    ("[&x {p: 1, q: 2}, {q: 3, <<: *x}]", [{"p": 1, "q": 2}, {"q": 2, "p": 1}]),
    ("[&x {p: 1}, &y {p: 2, r: 5}, {<<: [*x, *y], z: 0}]", [{"p": 1}, {"p": 2, "r": 5}, {"p": 1, "r": 5, "z": 0}]),
    ("{<<: {p: 1}, q: 2}", {"p": 1, "q": 2}),
    ("&a 5", 5),
]

FAULTS: list[tuple[str, str]] = [
    (".inf", "1:4: .inf is not a value that JSON can hold"),
    ("-.INF", "1:4: -.INF is not"),
    (".nan", "1:4: .nan is not"),
    ("[1, .nan, .inf]", "1:8: .nan is not"),
    ("!!int abc", "1:4: 'abc' is not of the type !!int"),
    ("!!binary '?'", "1:4: !!binary holds base64 of UTF-8 text"),
    ("{~: a}", "1:5: a key must be text, not null"),
    ("{[a]: 1}", "1:5: a key must be text, not a list or a mapping"),
    ("{a: 1, a: 2}", "1:11: the key 'a' is given twice (keep one of the two)"),
    ("{a: 1, 'a': 2}", "1:11: the key 'a' is given twice"),
    ("{1: 1, '1': 2}", "1:11: the key '1' is given twice"),
    ("[&x {p: 1}, {<<: *x, q: 1, q: 2}]", "1:31: the key 'q' is given twice"),
    ("{<<: 1}", "1:9: << merges a mapping"),
    ("*x", "found undefined alias"),
    ("a\x01b", "1:5: YAML: control characters are not allowed"),
    ("\n\tb: 1", "2:1: YAML: while scanning for the next token"),
    ("a: b", "1:5: YAML: mapping values are not allowed in this context (check the indentation"),
    ("[1, 2", "did not find expected ',' or ']'"),
    ("'x", "while scanning a quoted scalar (begun in line 1)"),
    ("@x", "found character that cannot start any token"),
]


def value_of(text: str) -> Any:
    (document,) = parse(f"v: {text}\n".encode(), "f.yaml")
    return document.value["v"]


def faults(data: bytes, path: str = "f.yaml") -> list[str]:
    with pytest.raises(BadFile) as raised:
        parse(data, path)
    return [str(e) for e in raised.value.errors]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values(text: str, expected: Any) -> None:
    found = value_of(text)
    assert found == expected
    assert type(found) is type(expected)
    assert orjson.loads(orjson.dumps(found)) == found


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values_in_a_file_with_anchors(text: str, expected: Any) -> None:
    """The general way of reading agrees with the fast one."""
    if "&" not in text:
        (document,) = parse(f"other: &anchor 1\nv: {text}\n".encode(), "f.yaml")
        assert document.value["v"] == expected


@pytest.mark.parametrize(("text", "expected"), FAULTS)
def test_faults(text: str, expected: str) -> None:
    assert expected in faults(f"v: {text}\n".encode())[0]


def test_all_faults_of_a_file_are_listed() -> None:
    found = faults(b"a: .inf\nb: {c: 1, c: 2}\n---\nd: .nan\n~: 1\n")
    assert [f.split(" ")[0] for f in found] == ["f.yaml:1:4:", "f.yaml:2:11:", "f.yaml:4:4:", "f.yaml:5:1:"]


def test_documents_and_their_lines() -> None:
    text = b"\xef\xbb\xbf# comment\na: 1\n---\n---\n# nothing\n---\n\nb: 2\r\nc: 3\r\n...\n"
    assert [(d.value, d.line) for d in parse(text, "f.yaml")] == [({"a": 1}, 2), ({"b": 2, "c": 3}, 8)]
    assert parse(b"", "f.yaml") == []
    assert parse(b"# only this\n", "f.yaml") == []


def test_lists_count_as_their_items() -> None:
    text = b"""apiVersion: v1
kind: List
items:
- kind: A
- kind: ConfigMapList
  apiVersion: v1
  items:
  - metadata: {name: x}
---
kind: B
"""
    found = [(d.value, d.line) for d in parse(text, "f.yaml")]
    inner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    assert found == [({"kind": "A"}, 4), (inner, 8), ({"kind": "B"}, 10)]
    assert "items[0] must be an object, not text" in faults(b"kind: List\nitems: [x]\n")[0]
    assert len(parse(b"kind: Shopping\nitems: [x]\n", "f.yaml")) == 1


@pytest.mark.parametrize("text", [b"- a\n", b"text\n", b"5\n", b"yes\n"])
def test_a_document_is_a_mapping(text: bytes) -> None:
    assert "an object is a mapping, this is" in faults(text)[0]


def test_bytes_that_are_not_utf8() -> None:
    assert faults(b"a: 1\nb: \xff\n") == ["f.yaml:2:4: invalid UTF-8: byte 0xff (save the file as UTF-8)"]
    assert "invalid UTF-8" in faults("a: 1".encode("utf-16"))[0]


def test_size() -> None:
    assert "a file has at most 3 MiB" in faults(b"a: 1\n" + b"#" * LIMIT)[0]
    assert len(parse(b"a: " + b"x" * (LIMIT - 10), "f.yaml")[0].value["a"]) == LIMIT - 10


BOMBS = {
    "flow": "b'[' * 3_000_000",
    "sequences": "b'- ' * 1_500_000",
    "lines": "b'[\\n' * 100_000",
    "keys": "b'? ' * 300_000",
    "mappings": "b'{a: ' * 300_000",
    "mixed": "b'- ? ' * 200_000",
    "indented": "b''.join(b' ' * i + b'a:\\n' for i in range(2400))",
    "itself": "b'a: &a [*a]'",
    "laughs": "b'a0: &a0 [x]\\n' + b''.join(b'a%d: &a%d [%s]\\n' % (i, i, b','.join([b'*a%d' % (i - 1)] * 9))"
    " for i in range(1, 30))",
    "quadratic": "b'a: &a ' + b'x' * 100_000 + b'\\nb:\\n' + b'- *a\\n' * 20_000",
    "merges": "b'a0: &a0 {x: 1}\\n' + b''.join(b'a%d: &a%d {k: *a%d, <<: [%s]}\\n' %"
    " (i, i, i - 1, b','.join([b'*a%d' % (i - 1)] * 9)) for i in range(1, 30))",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_faults(bomb: str) -> None:
    """In a process of their own: what goes wrong here goes wrong in C."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
from reconciler.layout.yamldoc import parse, BadFile
try:
    parse({BOMBS[bomb]}, "f.yaml")
except BadFile as bad:
    print(bad)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "more than 200 levels" in done.stdout or "too large" in done.stdout


def test_deep_but_allowed() -> None:
    assert parse(b"a: " + b"[" * 190 + b"]" * 190, "f.yaml")
    many = b"a:\n" + b"- {b: [1, {c: 2}]}\n" * 5000
    assert len(parse(many, "f.yaml")[0].value["a"]) == 5000


def test_aliases_do_not_share() -> None:
    value = value_of("[&x {p: []}, *x]")
    value[0]["p"].append(1)
    assert value[1] == {"p": []}


# --- JSON


def test_json() -> None:
    text = b' {"kind": "A", "n": 1.0, "big": 18446744073709551615}\n{"kind": "B",\n"s": "\\ud83d\\ude00/\\/"}\n'
    found = [(d.value, d.line) for d in parse(text, "f.json")]
    assert found == [({"kind": "A", "n": 1, "big": 1.8446744073709552e19}, 1), ({"kind": "B", "s": "😀//"}, 2)]
    assert type(found[0][0]["n"]) is int
    assert parse(b"", "f.json") == parse(b"null", "f.json") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": 1,\n "a": 2}', "f.json:2:2: the key 'a' is given twice"),
        (b'{"a": 1,}', "f.json:1:9: JSON: "),
        (b'{"a": NaN}', "JSON: NaN is not a value that JSON can hold"),
        (b'{"a": 1e999}', "is too large"),
        (b"[1]", "f.json:1: an object is a mapping, this is a list"),
        (b'{"a": ' * 300 + b"1" + b"}" * 300, "nested more than 200 levels deep"),
        (b"[" * 100_000, "nested more than 200 levels deep"),
        (b"a: 1", "f.json:1:1: JSON: Expecting value"),
    ],
)
def test_faults_of_json(text: bytes, expected: str) -> None:
    assert expected in faults(text, "f.json")[0]


# --- places

DEPLOYMENT = b"""# the shop
kind: Service
---
kind: Deployment
metadata:
  name: web
  annotations:
    example.com/a.b: "1"
    example.com/a: "2"
spec:
  containers:
  - name: a
  - image: b
    ports: [{containerPort: 1},
            {containerPort: 2}]
"""


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("", 4),
        ("metadata.name", 6),
        ("metadata.annotations[example.com/a.b]", 8),
        ("metadata.annotations.example.com/a", 9),
        ("metadata.annotations.example.com/a.b", 8),
        ("spec.containers[1].image", 13),
        ("spec.containers[1].ports[1].containerPort", 15),
        ("spec.containers[1].missing.deeper", 13),
        ("spec.containers[7]", 11),
        ("spec.template.spec", 10),
        ("status", 4),
    ],
)
def test_the_line_of_a_field(field: str, line: int) -> None:
    assert locate(DEPLOYMENT, 1, field) == line


def test_lines_of_what_is_not_there() -> None:
    assert locate(DEPLOYMENT, 5, "kind") == 0
    assert locate(b"a: [", 0, "a") == 0
    assert locate(b'{"kind": "A",\n"b": 1}', 0, "b", "f.json") == 2
    listed = b"kind: List\nitems:\n- kind: A\n- kind: B\n  c: 1\n"
    assert locate(listed, 1, "c") == 5


def test_documents_keep_nodes_only_on_demand() -> None:
    assert parse(b"a: 1", "f.yaml") == [YamlDocument({"a": 1}, 1, None)]

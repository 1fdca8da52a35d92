"""Edits of files as a person would look at them: the difference that a commit shows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from difflib import unified_diff
from typing import Any

import pytest

from reconciler.layout import manifest
from reconciler.layout.edit import add, dump, remove, replace
from reconciler.layout.errors import BadFile

Object = dict[str, Any]

FILE = """\
# License

---
# the web
apiVersion: apps/v1
kind: Deployment   # really
metadata:
  name: web
  creationTimestamp: null
  labels: {app: web, tier: "front"}   # l
spec:
  # how many
  replicas: 3    # three

  # odd
  paused: true
  template:
    spec:
      containers:
      # main
      - name: web
        image: 'nginx:1'   # img
        command: [sh, -c, "x"]
        env:
        - {name: A, value: "1"}
        - name: B
          value: |
              one
              two
      # side
      - name: side
        image: side
status: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  a: 'b'
"""


def spec(value: Object) -> Object:
    found: Object = value["spec"]
    return found


def containers(value: Object) -> list[Object]:
    found: list[Object] = value["spec"]["template"]["spec"]["containers"]
    return found


CHANGES: dict[str, tuple[Callable[[Object], Any], str]] = {
    "nothing": (lambda v: None, ""),
    "a number": (lambda v: spec(v).update(replicas=5), "-  replicas: 3    # three\n+  replicas: 5    # three\n"),
    "a text keeps its quotation marks": (
        lambda v: containers(v)[0].update(image="nginx:2"),
        "-        image: 'nginx:1'   # img\n+        image: 'nginx:2'   # img\n",
    ),
    "a text of several lines keeps its indentation": (
        lambda v: containers(v)[0]["env"][1].update(value="one\n\nthree\n"),
        "-              two\n+\n+              three\n",
    ),
    "within brackets": (
        lambda v: (containers(v)[0]["env"][0].update(value="on"), containers(v)[0]["command"].append("a,b")),
        '-        command: [sh, -c, "x"]\n+        command: [sh, -c, "x", "a,b"]\n'
        '-        - {name: A, value: "1"}\n+        - {name: A, value: "on"}\n',
    ),
    "out of brackets": (
        lambda v: (v["metadata"]["labels"].pop("app"), containers(v)[0]["command"].pop(1)),
        '-  labels: {app: web, tier: "front"}   # l\n+  labels: {tier: "front"}   # l\n'
        '-        command: [sh, -c, "x"]\n+        command: [sh, "x"]\n',
    ),
    "a key": (lambda v: spec(v).update(strategy={"type": "A"}), "+  strategy:\n+    type: A\n"),
    "a key goes with its comment": (lambda v: spec(v).pop("paused"), "-  # odd\n-  paused: true\n"),
    "the first key behind a dash": (
        lambda v: containers(v)[1].pop("name"),
        "-      - name: side\n-        image: side\n+      - image: side\n",
    ),
    "an item": (
        lambda v: containers(v).append({"name": "new", "ports": [{"containerPort": 80}]}),
        "+      - name: new\n+        ports:\n+        - containerPort: 80\n",
    ),
    "an item before the others": (lambda v: containers(v).insert(0, {"name": "new"}), "+      - name: new\n"),
    "an item goes with its comment": (
        lambda v: containers(v).pop(),
        "-      # side\n-      - name: side\n-        image: side\n",
    ),
    "a map for a number": (
        lambda v: spec(v).update(replicas={"a": [1]}),
        "-  replicas: 3    # three\n+  replicas:    # three\n+    a:\n+    - 1\n",
    ),
    "nothing left in a map": (
        lambda v: v["metadata"].update(labels={}),
        '-  labels: {app: web, tier: "front"}   # l\n+  labels: {}   # l\n',
    ),
}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=CHANGES.keys())
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_only_what_changes(change: Callable[[Object], Any], expected: str, line_break: str) -> None:
    data = FILE.replace("\n", line_break).encode()
    before = [m.value for m in manifest.read(data, "a.yaml").objects]
    value = copy.deepcopy(before[0])
    change(value)
    after = replace(data, "a.yaml", 0, value)
    assert difference(data, after) == expected.replace("\n", line_break)
    assert [m.value for m in manifest.read(after, "a.yaml").objects] == [value, before[1]]


def difference(before: bytes, after: bytes) -> str:
    lines = unified_diff(before.decode().splitlines(keepends=True), after.decode().splitlines(keepends=True), n=0)
    return "".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def test_removal_leaves_what_stands_apart() -> None:
    data = FILE.encode()
    assert remove(data, "a.yaml", 0) == b"# License\n\n" + data[data.index(b"---\napiVersion: v1") :]
    assert remove(data, "a.yaml", 1) == data[: data.index(b"---\napiVersion: v1")]
    assert remove(b"# only\n" + one("a"), "a.yaml", 0) is None
    two = b"# License\n\n# a\n" + one("a") + b"\n# apart\n---\n" + one("b")
    assert remove(two, "a.yaml", 0) == b"# License\n\n# apart\n---\n" + one("b")
    assert remove(one("a") + b"---\n" + one("b"), "a.yaml", 0) == one("b")


def one(name: str) -> bytes:
    return f"apiVersion: v1\nkind: A\nmetadata:\n  name: {name}\n".encode()


def obj(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "A", "metadata": {"name": name}}


@pytest.mark.parametrize(
    ("before", "between"),
    [
        (b"", b""),
        (b"# only\n", b""),
        (one("a"), b"---\n"),
        (one("a").rstrip(), b"\n---\n"),
        (one("a") + b"...\n", b"---\n"),
        (one("a") + b"---\n", b""),
        (one("a") + b"---\n# what follows\n", b""),
        (one("a") + b"# end\n", b"---\n"),
        (b"\xef\xbb\xbf" + one("a"), b"---\n"),
        (b'{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}', b"\n---\n"),
    ],
)
def test_addition_keeps_what_is_there(before: bytes, between: bytes) -> None:
    assert add(before, "a.yaml", obj("z")) == before + between + one("z")


def test_addition_behind_a_text_without_a_last_line_break() -> None:
    after = add(one("a") + b"x: |\n  b", "a.yaml", obj("z"))
    assert [m.value for m in manifest.read(after, "a.yaml").objects] == [{**obj("a"), "x": "b"}, obj("z")]


def test_a_text_that_ends_in_blank_lines_takes_no_others() -> None:
    """Those that follow in the file would count as the text's own; the comments of the document stay all the same."""
    data = b"# top\n" + one("a") + b"x: b\n\n\n# end\n"
    added = {**obj("a"), "x": "b", "z": "c\nd\n\n"}
    assert replace(data, "a.yaml", 0, added) == b"# top\n" + one("a") + b"x: b\n\n\nz: |+\n  c\n  d\n\n# end\n"
    changed = {**obj("a"), "x": "c\nd\n\n"}
    assert replace(data, "a.yaml", 0, changed) == b"# top\n" + one("a") + b'x: "c\\nd\\n\\n"\n\n\n# end\n'


def test_items_of_lists() -> None:
    data = b"apiVersion: v1\nkind: AList\nitems:\n# one\n- metadata: {name: a}\n# two\n- metadata: {name: b}\n"
    assert replace(data, "a.yaml", 1, obj("b")) == data
    after = replace(data, "a.yaml", 1, {**obj("b"), "x": 1})
    assert after == data + b"  x: 1\n"
    assert remove(after, "a.yaml", 1) == data[: data.index(b"# two")]
    assert remove(data[: data.index(b"# two")], "a.yaml", 0) is None
    assert remove(data + b"---\n" + one("z"), "a.yaml", 2) == data
    assert remove(data[: data.index(b"# two")] + b"---\n" + one("z"), "a.yaml", 0) == one("z")


def test_json_stays_json() -> None:
    new = b'{\n  "apiVersion": "v1",\n  "kind": "A",\n  "metadata": {\n    "name": "a"\n  }\n}\n'
    assert add(None, "a.json", obj("a")) == new
    four = new.replace(b"  ", b"    ")
    for path in ("a.json", "a.yaml"):
        assert replace(four, path, 0, {**obj("a"), "x": 1}) == four.replace(b"    }\n}", b'    },\n    "x": 1\n}')
    compact = b'{"kind":"A","apiVersion":"v1","metadata":{"name":"a"}}'
    assert replace(compact, "a.json", 0, {**obj("a"), "x": [1, "é"]}) == compact[:-1] + ',"x":[1,"é"]}'.encode()
    two = add(four, "a.json", obj("b"))
    assert two == four + four.replace(b'"a"', b'"b"')
    assert remove(two, "a.json", 0) == four.replace(b'"a"', b'"b"')
    assert remove(two, "a.json", 1) == four


ANCHORS = b"""\
apiVersion: v1
kind: A
metadata: {name: a}
base: &base
  p: 1  # one
  q: 2
other:
  <<: *base  # merged
  z: 3
list: [*base, 4]
same: *base
"""


def test_anchors_stay_where_they_can() -> None:
    value = manifest.read(ANCHORS, "a.yaml").objects[0].value
    after = replace(ANCHORS, "a.yaml", 0, {**value, "other": {"p": 5, "q": 2, "z": 4}})
    assert difference(ANCHORS, after) == "-  z: 3\n+  z: 4\n+  p: 5\n"
    after = replace(ANCHORS, "a.yaml", 0, {**value, "same": 7})
    assert difference(ANCHORS, after) == "-same: *base\n+same: 7\n"
    changed = {**value, "base": {"p": 2}}
    after = replace(ANCHORS, "a.yaml", 0, changed)
    assert manifest.read(after, "a.yaml").objects[0].value == changed


def test_what_the_reader_leaves_out_stays() -> None:
    data = b"apiVersion: tenancy.kcp.dev/v1\nkind: A\nmetadata: {name: a, uid: x}\nstatus: {b: 1}\n"
    value = manifest.read(data, "a.yaml").objects[0].value
    assert replace(data, "a.yaml", 0, value) == data
    assert replace(data, "a.yaml", 0, {**value, "x": 1}) == data + b"x: 1\n"


def test_dump_as_a_person_writes() -> None:
    value = {"kind": "A", "spec": {"b": ["x", {"c": 1, "d": "l\nm\n"}], "e": [], "a": {}}, "apiVersion": "v1",
             "metadata": {"labels": {"on": "yes"}, "name": "a", "namespace": "web"}}  # fmt: skip
    assert dump(value).decode() == (
        'apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  namespace: web\n  labels:\n    "on": "yes"\n'
        "spec:\n  b:\n    - x\n    - c: 1\n      d: |\n        l\n        m\n  e: []\n  a: {}\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        *[(word, f'"{word}"') for word in ("on", "yes", "y", "null", "~", "1e3", "0o7", "017", "2020-01-01", "12:30")],
        *[(word, f'"{word}"') for word in ("- a", "a: b", "a #b", "a:", "*a", "&a", "", " a", "=", ".inf", "1_000")],
        *[(word, word) for word in ("a:b", "http://a/b", "100m", "1.2.3", "10.0.0.1", "--port=80", "-c", "é", "a, b")],
        ('{"a": 1}', """'{"a": 1}'"""),
        ("\x00\x85\ufeff", '"\\u0000\\u0085\\ufeff"'),
        ("a\r\nb", '"a\\r\\nb"'),
    ],
)
def test_texts(text: str, written: str) -> None:
    assert dump({"a": text}).decode() == f"a: {written}\n"


def test_bad_files_and_objects_are_refused() -> None:
    for edit in (lambda d: add(d, "a.yaml", obj("a")), lambda d: remove(d, "a.yaml", 0)):
        with pytest.raises(BadFile, match=r"a\.yaml:2:1"):
            edit(b"a: [")
    with pytest.raises(BadFile):
        replace(b"\xff", "a.yaml", 0, obj("a"))
    with pytest.raises(IndexError):
        remove(one("a"), "a.yaml", 1)
    deep: Any = 1
    for _ in range(250):
        deep = [deep]
    with pytest.raises(BadFile, match="nested more than 200 levels"):
        add(None, "a.yaml", {**obj("a"), "x": deep})
    with pytest.raises(BadFile, match="at most 3 MiB"):
        add(None, "a.yaml", {**obj("a"), "x": "a" * (3 << 20)})

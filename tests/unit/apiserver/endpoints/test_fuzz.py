"""Whatever is sent, the answer is a Status or what was asked for: never a 500, a text of the program's, or silence.

A request is drawn part by part from what is right, what is nearly right and what is wrong; the errors that were found
this way stand as examples of their own in the tests of the module that was wrong.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CORPUS = Path(__file__).parents[3] / "golden" / "strategy" / "corpus.yaml"
LAB, BASE = "labcluster000000", "/clusters/root:lab"
SECONDS = 20
AS_KUBERNETES = "failed to create typed patch object"
"""A 500 of kube-apiserver's own, for applied fields that nobody knows."""

GADGETS = yaml.safe_load("""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.z.io}
spec:
  group: z.io
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    additionalPrinterColumns:
    - {name: N, type: integer, jsonPath: .spec.n}
    - {name: Since, type: date, jsonPath: .spec.text}
    - {name: Some, type: string, jsonPath: ".spec.parts[?(@.k=='a')].v"}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        properties:
          spec:
            type: object
            properties:
              n: {type: integer}
              text: {type: string, pattern: "^(a+)+$"}
              some: {default: {x: 1}, type: object, properties: {x: {type: integer}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              port: {x-kubernetes-int-or-string: true}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [k]
                items: {type: object, required: [k], properties: {k: {type: string}, v: {type: string}}}
""")
GADGET = yaml.safe_load("""
apiVersion: z.io/v1
kind: Gadget
metadata: {name: g, namespace: default, labels: {a: b}}
spec: {n: 1, text: a, parts: [{k: a, v: b}], free: {a: [1, {b: 2}]}}
""")

VALUES = st.sampled_from([
    None, True, 0, -1, 1.5, "", "x", "a/b/c", "é", "\0", [], {}, [None], [{}], {"a": None}, {"": 1}, [1, "a"], "1Gi",
    10**18, 2**63, 2**64 - 1, -(2**63), 1e308, "9" * 5000, "x" * 70_000, [[[]]], {"$patch": "delete"}, {"$patch": "x"},
    "9999-99-99T99:99:99Z", "[", "(a+)+$",
])  # fmt: skip
ODD_FIELDS = st.sampled_from(["metadata", "spec", "status", "$patch", "$retainKeys", "a.b", ""])
RAW = st.one_of(
    st.sampled_from([
        b"", b"null", b"[]", b'"x"', b"{}", b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}', b"\xff\xfe",
        b"[" * 20_000,
        b'{"a":' * 300 + b"1" + b"}" * 300, b'{"a":' * 1000 + b"1" + b"}" * 1000, b'{"a":' + b"9" * 5000 + b"}",
        b"a: &a [*a]", b"a: !!set {x}", b"a: !!int ''", b"a: .nan", b"1: 2", b"? [1]\n: 2", b"<<: x", b"k8s\0\xff",
        b"- " * 2000 + b"x", b"%YAML 9.9\n---\na: b", b"a: !!omap [a: b]", b"--- a\n--- b", b"a: '\\ud800'",
    ]),
    st.binary(max_size=40),
    st.binary(max_size=40).map(b"k8s\0".__add__),
)  # fmt: skip
POINTERS = st.sampled_from([
    "", "/", "/metadata/name", "/metadata", "/spec", "/metadata/labels/a", "/spec/parts/0", "/spec/parts/-", "/kind",
    "/spec/parts/" + "9" * 5000, "x", None, 1, "/metadata/resourceVersion", "/metadata/managedFields", "/spec/free/~2",
])  # fmt: skip
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", None])},
        optional={"path": POINTERS, "from": POINTERS, "value": VALUES},
    ),
    max_size=4,
)
NAMES = st.sampled_from(["a" * 300, "é", "a\0b", "..", "%", "a b", "A", "x" * 2000, "\U0001f600"])
TOKENS = st.sampled_from([
    {"v": "meta.k8s.io/v1", "rv": 1, "start": "a/b\0"}, {"v": "meta.k8s.io/v1", "rv": -1, "start": "a" * 2000 + "\0"},
    {"v": "meta.k8s.io/v1", "rv": 1e300, "start": "a\0\0b/c\0"}, {"v": "meta.k8s.io/v1", "rv": -1, "start": "\0/x\0"},
    {"v": "meta.k8s.io/v1", "rv": True, "start": ["a"]}, [1], "x",
]).map(lambda t: base64.urlsafe_b64encode(json.dumps(t).encode()).decode())  # fmt: skip
WORDS = st.one_of(
    st.sampled_from([
        "", "0", "1", "-1", "true", "1e9", "９", "9" * 30, "9" * 5000, "1_0", " 5", "\0", "é", "Exact", "NotOlderThan",
        "a=b", "a in (b,c)", "!a", "a>1", "(", "((((", "a in (" * 50, "=", "metadata.name=a", "metadata.name=a\0b",
        "metadata.name=\\", "status.phase=x", "a=b=c", ",,,", "a notin (),b", "x" * 3000, "All", "Strict", "Warn",
        "Background", "Orphan", "10s", "-5s", "1h1h", "inf", "999999999h", "Object",
    ]),
    TOKENS,
    st.text(max_size=20),
)  # fmt: skip
PARAMETERS = st.sampled_from([
    "limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector", "fieldSelector", "timeout",
    "timeoutSeconds", "sendInitialEvents", "allowWatchBookmarks", "pretty", "dryRun", "fieldValidation", "fieldManager",
    "force", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "includeObject", "watch",
])  # fmt: skip
ACCEPTED = st.sampled_from([
    "*/*", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v9",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "application/yaml", "text/html", ";;;,,,",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "application/vnd.kubernetes.protobuf",
    "application/json;q=nan", "application/json;q=inf,*/*;q=1e400", "a" * 5000,
])  # fmt: skip
BODIES = st.sampled_from(["", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", ";"])
PATCHES = st.sampled_from([
    "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json",
    "application/apply-patch+yaml",
])  # fmt: skip
PATHS = st.one_of(
    st.sampled_from(["/openapi/v2", "/openapi/v3", "/apis", "/api", "/version", "/apis/z.io/v1"]).map(BASE.__add__),
    st.text(max_size=20).map("/clusters/".__add__),
    st.text(max_size=20).map("/".__add__),
    st.text(max_size=20).map(f"{BASE}/api/v1/".__add__),
    st.just("/clusters/*/apis/z.io/v1/gadgets"),
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container below a value with one of its keys or indexes."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(entries):
        yield value, key
        yield from places(item)


@st.composite
def broken(draw: st.DrawFn, good: dict[str, Any]) -> Any:
    """A good object with up to three things wrong."""
    obj = copy.deepcopy(good)
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(obj))
        if not found:
            break
        holder, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["drop", "add", "set", "set"])):
            case "drop" if isinstance(holder, dict):
                del holder[key]
            case "add" if isinstance(holder, dict):
                holder[draw(ODD_FIELDS)] = copy.deepcopy(draw(VALUES))
            case _:
                holder[key] = copy.deepcopy(draw(VALUES))
    return obj


class Target:
    """One good object and the path of its collection."""

    def __init__(self, obj: dict[str, Any], path: str) -> None:
        self.obj, self.path = obj, path
        self.name: str = obj["metadata"]["name"]


@st.composite
def requests(draw: st.DrawFn, targets: list[Target]) -> tuple[str, str, bytes, str, str]:
    """Method, path with query, body, Content-Type, Accept."""
    at = draw(st.sampled_from(targets))
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "PATCH", "DELETE"]))
    kind = draw(PATCHES if method == "PATCH" and draw(st.integers(0, 9)) else BODIES)
    sometimes = draw(st.integers(0, 9))
    name = quote(draw(NAMES)) if sometimes == 0 else at.name
    path = at.path if method == "POST" or sometimes == 1 else f"{at.path}/{name}"
    if "/" in path and sometimes == 2:
        path += draw(st.sampled_from(["/status", "/scale", "/finalize", "/token", "/log"]))
    if sometimes == 3:
        path = quote(draw(PATHS))
    if draw(st.integers(0, 4)) == 0:
        body = draw(RAW)
    elif kind == "application/json-patch+json":
        body = json.dumps(draw(OPERATIONS)).encode()
    else:
        body = json.dumps(draw(broken(at.obj))).encode()
    pairs = draw(st.lists(st.tuples(PARAMETERS, WORDS), max_size=3))
    query = "&".join(f"{name}={quote(value)}" for name, value in pairs)
    return method, f"{path}?{query}" if query else path, body, kind, draw(ACCEPTED) if sometimes in (4, 5) else ""


@pytest.fixture(scope="module")
def corpus() -> list[dict[str, Any]]:
    found = [GADGETS, GADGETS, *([GADGET] * 8)]
    return found + [json.loads(json.dumps(obj, default=str)) for obj in yaml.safe_load_all(CORPUS.read_text()) if obj]


def placed(api: Any, run: Any, corpus: list[dict[str, Any]]) -> list[Target]:
    """A workspace that takes writes, with all of the corpus that is good in it."""
    api.put_workspace("root:lab", LAB, writes="Store", builtins="Kubernetes")
    api.put(api.manifest("v1 Namespace", "default", cluster=LAB))
    found: list[Target] = []
    for obj in corpus:
        group, _, version = obj["apiVersion"].rpartition("/")
        kinds = api.app._realms.main.catalog.kinds(LAB)
        kind = kinds.by_kind(group, version, obj["kind"])
        if kind is None:
            continue
        obj["metadata"]["namespace"] = "default"
        if not kind.namespaced:
            del obj["metadata"]["namespace"]
        root = f"{BASE}/apis/{group}/{version}" if group else f"{BASE}/api/{version}"
        path = f"{root}/namespaces/default/{kind.resource}" if kind.namespaced else f"{root}/{kind.resource}"
        if run(api.call("POST", path, obj)).status in (201, 409):
            found.append(Target(obj, path))
    assert len(found) > 50
    return found


def test_whatever_is_sent_is_answered(api: Any, run: Any, corpus: list[dict[str, Any]]) -> None:
    targets = placed(api, run, corpus)

    @settings(max_examples=600, suppress_health_check=list(HealthCheck), database=None)
    @given(requests(targets))
    def check(request: tuple[str, str, bytes, str, str]) -> None:
        method, path, body, kind, accept = request
        if watches(path):
            path += ("&" if "?" in path else "?") + "timeoutSeconds=1"
        asyncio.run(answered(api, method, path, body, kind, accept))

    check()


def watches(path: str) -> bool:
    return "watch=" in path or "/watch/" in path


async def answered(api: Any, method: str, path: str, body: bytes, kind: str, accept: str) -> None:
    call = asyncio.ensure_future(api.call(method, path, body, kind=kind, **({"accept": accept} if accept else {})))
    watching = watches(path)
    done, _ = await asyncio.wait({call}, timeout=0.05 if watching else SECONDS)
    if not done and watching:  # an open watch is a good answer
        call.cancel()
        await asyncio.wait({call})
        return
    assert done, "no answer"
    reply = call.result()
    text = reply.body.decode()
    assert reply.status < 500 or reply.status in (501, 504) or AS_KUBERNETES in text, text
    assert "Traceback" not in text and ".py" not in text
    if reply.headers["content-type"] == "application/json" and reply.body:
        found = json.loads(text)
        assert reply.status < 400 or (found["kind"], found["code"]) == ("Status", reply.status)

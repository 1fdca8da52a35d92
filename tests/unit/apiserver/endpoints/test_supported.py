"""docs/kubernetes-api.md is made here, from the registry and from what the server answers, so that it cannot promise
what is not there. Run this file with `--update-golden` to write it anew, and read the difference."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from apiserver.admission.plugins import PLUGINS
from apiserver.admission.unenforced import UNENFORCED
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.served import (
    exported_builtins,
    kubernetes_builtins,
    target_builtins,
    workspace_builtins,
)
from apiserver.registry.catalog import Catalog
from apiserver.registry.served import ALL_VERBS, ServedKind
from apiserver.registry.subresources import CONNECTIONS

PAGE = Path(__file__).parents[4] / "docs" / "kubernetes-api.md"
HEAD = """# What is supported of the Kubernetes API

This page is made by a test from the registry and from answers of the server
(`tests/unit/apiserver/endpoints/test_supported.py`), against Kubernetes {version}. What it does not name is not
supported: it answers 4xx or 501 with a Status that says so. How it performs is in [performance.md](performance.md).

Three places serve kinds: **workspaces** (what git declares, and what is bound), workspaces of type **kube-compat**
(all stable kinds of Kubernetes as inert objects: nothing runs, but all that kube-apiserver itself does on a write is
done), and embedded sync **targets** (a cluster played by the server, with a stand-in for kubelet). CRDs and bound APIs
add kinds to each.
"""
JSON, YAML, MERGE = "application/json", "application/yaml", "application/merge-patch+json"
CM = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
META = "g=meta.k8s.io;v=v1"
OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Object = dict[str, Any]


class Ask(NamedTuple):
    """One request. `shows`: part of the answer (body or headers) that proves it was understood."""

    feature: str
    method: str
    path: str
    body: Any = b""
    kind: str = JSON
    accept: str = JSON
    status: int = 200
    shows: str = ""


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
       "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}}  # fmt: skip
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
              "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}  # fmt: skip
MORE = {"spec": {"template": {"spec": {"containers": [{"name": "e", "image": "y"}]}}}}
RULED = {"type": "object", "properties": {"size": {"type": "integer"}},
         "x-kubernetes-validations": [{"rule": "self.size > 1"}]}  # fmt: skip
VERSION = {"name": "v1", "served": True, "storage": True,
           "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": RULED}}}}  # fmt: skip
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "bs.z.io"},
       "spec": {"group": "z.io", "scope": "Namespaced", "names": {"plural": "bs", "kind": "B"},
                "versions": [VERSION]}}  # fmt: skip
REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
          "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}  # fmt: skip
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

ASKS = [
    Ask("discovery: aggregated v2", "GET", "/apis", accept=AGGREGATED, shows="APIGroupDiscoveryList"),
    Ask("discovery: legacy", "GET", "/apis/apps/v1", shows="APIResourceList"),
    Ask("OpenAPI v3", "GET", "/openapi/v3", shows="apis/apps/v1"),
    Ask("OpenAPI v2, JSON", "GET", "/openapi/v2", shows='"swagger":"2.0"'),
    Ask("OpenAPI v2, protobuf", "GET", "/openapi/v2", accept=OPENAPI_V2, shows="openapi.spec.v2.v1.0+protobuf"),
    Ask("create: JSON", "POST", CM, config_map("a", k="1"), status=201),
    Ask("create: YAML", "POST", CM, b"metadata: {name: b}\ndata: {k: '1'}\n", YAML, status=201),
    Ask("create: no Content-Type", "POST", CM, config_map("c"), "", status=201),
    Ask("create: generateName", "POST", CM, {"metadata": {"generateName": "g-"}}, status=201, shows='"name":"g-'),
    Ask("create: dryRun", "POST", f"{CM}?dryRun=All", config_map("dry"), status=201),
    Ask("fieldValidation=Strict", "POST", f"{CM}?fieldValidation=Strict", {**config_map("x"), "no": 1}, status=400,
        shows="strict decoding error"),
    Ask("fieldValidation=Warn", "POST", f"{CM}?fieldValidation=Warn&dryRun=All", {**config_map("x"), "no": 1},
        status=201, shows="unknown field"),
    Ask("get: YAML", "GET", f"{CM}/a", accept=YAML, shows="kind: ConfigMap"),
    Ask("get: Table", "GET", f"{CM}/a", accept=f"{JSON};as=Table;{META}", shows="columnDefinitions"),
    Ask("get: PartialObjectMetadata", "GET", f"{CM}/a", accept=f"{JSON};as=PartialObjectMetadata;{META}",
        shows="PartialObjectMetadata"),
    Ask("list: limit and continue", "GET", f"{CM}?limit=1", shows='"continue"'),
    Ask("list: label selectors", "GET", f"{CM}?labelSelector=a+notin+(b),!c", shows="ConfigMapList"),
    Ask("list: field selectors", "GET", f"{CM}?fieldSelector=metadata.name%3Da", shows='"name":"a"'),
    Ask("list: resourceVersionMatch", "GET", f"{CM}?resourceVersion=1&resourceVersionMatch=NotOlderThan"),
    Ask("list: Table", "GET", CM, accept=f"{JSON};as=Table;{META}", shows="columnDefinitions"),
    Ask("watch", "GET", f"{CM}?watch=1&timeoutSeconds=1", shows='"type":"ADDED"'),
    Ask("watch: bookmarks and WatchList", "GET",
        f"{CM}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        "&allowWatchBookmarks=true", shows="k8s.io/initial-events-end"),
    Ask("watch: deprecated paths (`/api/v1/watch/…`)", "GET",
        "/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1", shows='"type":"ADDED"'),
    Ask("watch: Tables", "GET", f"{CM}?watch=1&timeoutSeconds=1", accept=f"{JSON};as=Table;{META}", shows="Table"),
    Ask("update", "PUT", f"{CM}/a", config_map("a", k="2")),
    Ask("update: optimistic concurrency", "PUT", f"{CM}/a",
        {**config_map("a"), "metadata": {"name": "a", "resourceVersion": "1"}}, status=409),
    Ask("patch: merge", "PATCH", f"{CM}/a", {"data": {"l": "3"}}, MERGE, shows='"l":"3"'),
    Ask("patch: JSON", "PATCH", f"{CM}/a", [{"op": "remove", "path": "/data/l"}], "application/json-patch+json"),
    Ask("create: a workload, with defaults", "POST", DEPLOYMENTS, DEPLOYMENT, status=201, shows='"replicas":1'),
    Ask("patch: strategic merge", "PATCH", f"{DEPLOYMENTS}/d", MORE, "application/strategic-merge-patch+json",
        shows='"name":"c"'),
    Ask("patch: server-side apply", "PATCH", f"{CM}/a?fieldManager=m&force=true", config_map("a", k="4"),
        "application/apply-patch+yaml", shows='"operation":"Apply"'),
    Ask("scale", "GET", f"{DEPLOYMENTS}/d/scale", shows='"kind":"Scale"'),
    Ask("access reviews", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", REVIEW, status=201,
        shows='"allowed":true'),
    Ask("custom resources", "POST", CRDS, CRD, status=201, shows="Established"),
    Ask("delete: preconditions", "DELETE", f"{CM}/b", {"preconditions": {"uid": "other"}}, status=409),
    Ask("delete: collection", "DELETE", f"{CM}?fieldSelector=metadata.name%3Db"),
    Ask("create: a Pod", "POST", PODS, POD, status=201, shows='"phase":"Pending"'),
    Ask("pods: binding", "POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n"}}, status=201),
    Ask("pods: ephemeral containers", "PATCH", f"{PODS}/p/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "e", "image": "x"}]}}, "application/strategic-merge-patch+json"),
    Ask("pods: resize", "PATCH", f"{PODS}/p/resize",
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}},
        "application/strategic-merge-patch+json", shows='"cpu":"2"'),
    Ask("pods: logs, exec, attach, port-forward, proxy", "GET", f"{PODS}/p/log"),
    Ask("pods: eviction", "POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}}, status=201),
    Ask("CEL rules of CRDs are enforced", "POST", "/apis/z.io/v1/namespaces/default/bs",
        {"apiVersion": "z.io/v1", "kind": "B", "metadata": {"name": "b"}, "spec": {"size": 1}}, status=422),
    Ask("quotas are enforced", "POST", PODS, {**POD, "metadata": {"name": "q"}}, status=403),
]  # fmt: skip
TESTED_ELSEWHERE = [
    ("create: Kubernetes protobuf", "test_protobuf.py"),
    ("custom resources: conversion by [webhooks](webhooks.md)", "test_conversion_webhooks.py"),
    ("watch: WebSocket", "serving/test_sockets.py"),
    ("watch: ends when its kind's definition or its workspace goes or changes", "test_watch.py"),
    ("watch: resume from any retained revision, 410 after compaction", "test_watch_histories.py"),
    ("lists across workspaces (`/clusters/*`)", "test_worlds.py"),
]
NOT_THERE = """Not there yet, each refused, or stored and answered with a Warning: CEL validation rules, admission
policies and webhooks, quota and limit ranges, OIDC, certificate signing, audit, priority and fairness (requests are
bounded per user instead), aggregated API servers, and whatever needs a node (logs, exec, attach, port-forward, proxy:
these say what a kube-apiserver says of Pods that are placed nowhere, and 501 where it would turn to a node)."""


@pytest.fixture
def compat(api: Any) -> Iterator[Any]:
    """The embedded target of `api` with every stable kind."""
    api.put(api.manifest("v1 ResourceQuota", "none", "default", "target", spec={"hard": {"pods": "0"}}),
            store=api.target)  # fmt: skip
    realm = api.app._realms._targets.realm("root", "edge")
    realm.catalog = Catalog(api.target, kubernetes_builtins())
    yield api


def test_the_page_says_what_there_is(compat: Any, run: Any, update_golden: bool) -> None:
    text = page(lambda *a, **k: run(compat.call(a[0], compat.EDGE + a[1], *a[2:], **k)))
    if update_golden:
        PAGE.write_text(text)
    assert PAGE.read_text() == text, f"run pytest {Path(__file__).name} --update-golden and read the difference"


def page(call: Callable[..., Any]) -> str:
    features = [(ask.feature, "yes" if _answered(call, ask) else "no") for ask in ASKS]
    features += [(feature, "yes") for feature, where in TESTED_ELSEWHERE if _stands(where)]
    version = ".".join(call("GET", "/version").json["gitVersion"].lstrip("v").split(".")[:2])
    parts = [HEAD.format(version=version), "## Requests\n", table(("what", "supported"), sorted(features)), NOT_THERE]
    plugins = ", ".join(sorted({*PLUGINS, *ALWAYS}))
    parts += ["\n## Admission\n", textwrap.fill(f"{ADMISSION} {plugins}.", 120)]
    parts += ["\n## Kinds\n", KINDS, kinds_table(call)]
    return "\n".join(parts)


ALWAYS = ("NamespaceLifecycle",)
ADMISSION = (
    "In kube-compat workspaces and targets new objects get, and writes are held to, what these plugins of "
    "kube-apiserver say; `treeplane up --disable-admission-plugins` does without some:"
)
KINDS = """*All* verbs are create, delete, deletecollection, get, list, patch, update and watch. A subresource in
parentheses is listed in discovery and leads nowhere.
"""


def _answered(call: Callable[..., Any], ask: Ask) -> bool:
    reply = call(ask.method, ask.path, ask.body, kind=ask.kind, accept=ask.accept)
    said = reply.body.decode(errors="replace").replace('": ', '":') + str(reply.headers)
    return bool(reply.status == ask.status and ask.shows in said)


def _stands(where: str) -> bool:
    here = Path(__file__).parent
    return (here / where).exists() or (here.parent / where).exists()


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def kinds_table(call: Callable[..., Any]) -> str:
    everything: dict[tuple[str, str, str], ServedKind] = {}
    places: dict[tuple[str, str, str], list[str]] = {}
    for place, kinds in (
        ("workspaces", workspace_builtins()),
        ("kube-compat", kubernetes_builtins()),
        ("targets", target_builtins()),
        ("bound", exported_builtins()),
    ):
        for kind in kinds.all():
            key = (kind.group, kind.version, kind.resource)
            everything.setdefault(key, kind)
            places.setdefault(key, []).append(place)
            if place == "kube-compat":
                everything[key] = kind
    rows = []
    for key, kind in sorted(everything.items()):
        where = ", ".join(places[key]) if len(places[key]) < 3 else "everywhere"
        if places[key] == ["bound"]:
            where = f"workspaces that bind `{ENTRIES[kind.qualified].export}`"
        note = UNENFORCED.get(kind.qualified, "")
        rows.append((kind.api_version, f"{kind.kind}", verbs(kind), subresources(call, kind, places[key]), where, note))
    return table(("version", "kind", "verbs", "subresources", "served in", "stored, but"), rows)


def verbs(kind: ServedKind) -> str:
    return "all" if kind.verbs == ALL_VERBS else ", ".join(sorted(kind.verbs))


def subresources(call: Callable[..., Any], kind: ServedKind, places: list[str]) -> str:
    """Asked for, where the kind is served at what `call` reaches."""
    found = []
    for name in sorted(kind.subresources):
        supported = name not in CONNECTIONS
        if supported and "kube-compat" in places:
            root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            collection = f"{root}/namespaces/default/{kind.resource}" if kind.namespaced else f"{root}/{kind.resource}"
            replies = [call(method, f"{collection}/none/{name}", {}, kind=JSON) for method in ("PUT", "POST")]
            supported = not any(reply.status == 501 for reply in replies)
        found.append(name if supported else f"({name})")
    return ", ".join(found)


def test_every_listed_kind_can_be_listed_and_watched(compat: Any, run: Any) -> None:
    """Clients list and watch whatever discovery names."""
    for kind in kubernetes_builtins().all():
        if "list" not in kind.verbs:
            continue
        root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        reply = run(compat.get(f"{compat.EDGE}{root}/{kind.resource}"))
        assert (reply.status, reply.json["kind"]) == (200, kind.list_kind)
        assert ("watch" in kind.verbs) or kind.kind == "ComponentStatus"

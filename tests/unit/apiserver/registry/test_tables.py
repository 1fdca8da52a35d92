from __future__ import annotations

from typing import Any

import pytest

from apiserver.model import clock
from apiserver.registry import jsonpath, kinds, tables
from apiserver.registry.printers.base import duration, selector, since

WORKSPACE, TARGET = kinds.common_builtins(), kinds.target_builtins()


def cells(table: kinds.KindTable, group: str, version: str, resource: str, obj: dict[str, Any]) -> dict[str, Any]:
    kind = table.by_resource(group, version, resource)
    assert kind is not None
    obj.setdefault("metadata", {}).setdefault("name", "a")
    values = tables.row(kind, obj)
    names = [c["name"] for c in tables.column_definitions(kind)]
    assert len(values) == len(names)
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize(("seconds", "text"), [
    (-5, "<invalid>"), (0, "0s"), (119, "119s"), (120, "2m"), (312, "5m12s"), (42 * 60, "42m"), (3 * 3600, "3h"),
    (3 * 3600 + 900, "3h15m"), (20 * 3600, "20h"), (53 * 3600, "2d5h"), (45 * 86400, "45d"), (760 * 86400, "2y30d"),
    (9 * 365 * 86400, "9y"),
])  # fmt: skip
def test_durations(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def test_since() -> None:
    assert since(clock.now()) in ("0s", "1s")
    assert since(None) == since("x") == "<unknown>"


@pytest.mark.parametrize("kind", TARGET.all() + WORKSPACE.all(), ids=lambda k: f"{k.qualified}.{k.version}")
def test_every_kind_can_be_printed_empty(kind: kinds.ServedKind) -> None:
    obj = {"metadata": {"name": "a"}}
    assert len(tables.row(kind, obj)) == len(tables.column_definitions(kind)) == len(kind.columns)
    assert [c["name"] for c in tables.column_definitions(kind)] == [c.name for c in kind.columns]


def test_deployment() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": "j"}]}}
    obj = {
        "spec": {"replicas": 3, "selector": {"matchLabels": {"b": "2", "a": "1"}}, "template": template},
        "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
    }
    found = cells(TARGET, "apps", "v1", "deployments", obj)
    assert found["Ready"] == "2/3" and found["Up-to-date"] == 3 and found["Available"] == 1
    assert found["Images"] == "i:1,j" and found["Selector"] == "a=1,b=2"


def test_pod_and_job_and_service() -> None:
    pod = {
        "spec": {"containers": [{"name": "c"}], "nodeName": "n1"},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"ready": True, "restartCount": 2}]},
    }
    found = cells(TARGET, "", "v1", "pods", pod)
    assert (found["Ready"], found["Status"], found["Restarts"], found["Node"]) == ("1/1", "Running", "2", "n1")
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}], "phase": "Pending"}
    assert cells(TARGET, "", "v1", "pods", {"status": waiting})["Status"] == "ImagePullBackOff"
    ended = {"containerStatuses": [{"state": {"terminated": {"exitCode": 3}}, "restartCount": 1}]}
    assert cells(TARGET, "", "v1", "pods", {"status": ended})["Status"] == "ExitCode:3"
    starting = {"initContainerStatuses": [{"state": {"running": {}}}], "phase": "Pending"}
    found = cells(TARGET, "", "v1", "pods", {"spec": {"initContainers": [{}, {}]}, "status": starting})
    assert found["Status"] == "Init:0/2"
    job = {
        "spec": {"completions": 2, "template": {"spec": {"containers": []}}},
        "status": {
            "succeeded": 2,
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:30Z",
            "conditions": [{"type": "Complete", "status": "True"}],
        },
    }
    found = cells(TARGET, "batch", "v1", "jobs", job)
    assert (found["Status"], found["Completions"], found["Duration"]) == ("Complete", "2/2", "30s")
    service = {"spec": {"type": "ClusterIP", "clusterIP": "10.1.1.1", "ports": [{"port": 80, "protocol": "TCP"}]}}
    found = cells(TARGET, "", "v1", "services", service)
    assert (found["External-IP"], found["Port(s)"], found["Selector"]) == ("<none>", "80/TCP", "<none>")


def test_workspace_and_placement() -> None:
    annotations = {"treeplane.dev/source-commit": "0123456789abcdef"}
    obj = {"metadata": {"name": "w", "annotations": annotations, "labels": {"region": "eu"}},
           "spec": {"type": {"name": "team"}, "URL": "https://here"}, "status": {"phase": "Ready"}}  # fmt: skip
    found = cells(WORKSPACE, "tenancy.kcp.io", "v1alpha1", "workspaces", obj)
    assert [*found] == ["Name", "Type", "Region", "Phase", "Commit", "Pinned", "Held", "Lag", "URL", "Age"]
    assert [*found.values()][1:-1] == ["team", "eu", "Ready", "0123456789", None, None, None, "https://here"]
    conditions = [{"type": "Ready", "message": "ready"}, {"type": "Scheduled", "message": "runs on t"}]
    found = cells(WORKSPACE, "scheduling.kcp.io", "v1alpha1", "placements", {"status": {"conditions": conditions}})
    assert found["Why"] == "runs on t"
    found = cells(WORKSPACE, "scheduling.kcp.io", "v1alpha1", "placements", {"status": {"conditions": conditions[:1]}})
    assert found["Why"] == "ready"


HOSTILE = "a\x1b]0;owned\x07 \u202etxt\n\u2066b"


@pytest.mark.parametrize(("message", "shown"), [
    ("held back at the last good commit: workspaces/root/a/web.yaml:3: unknown field; b.yaml: no",
     "web.yaml:3: unknown field; b.yaml: no"),
    ("never had a good commit: treeplane.yaml: gone", "treeplane.yaml: gone"),
    ("held back, and pinned to 0123456789 by a: why", "held back, and pinned to 0123456789 by…"),
    (f"held back at the last good commit: workspaces/root/a/web.yaml:3: {HOSTILE}",
     "web.yaml:3: a ]0;owned txt b"),
    (f"held back at the last good commit: {'x' * 9000}", f"{'x' * 39}…"),
    ("", "ContentInvalid"),
])  # fmt: skip
def test_a_workspace_that_is_held_shows_the_first_words_of_why_and_its_lag(message: str, shown: str) -> None:
    said = {"type": "CommitApplied", "status": "False", "reason": "ContentInvalid", "message": message}
    found = cells(WORKSPACE, "tenancy.kcp.io", "v1alpha1", "workspaces", {"status": {"conditions": [said], "lag": 3}})
    assert (found["Held"], found["Lag"]) == (shown, 3)
    assert len(found["Held"]) <= 40
    assert found["Held"].isprintable()
    good = {"status": {"conditions": [{**said, "status": "True"}]}}
    assert cells(WORKSPACE, "tenancy.kcp.io", "v1alpha1", "workspaces", good)["Held"] is None


@pytest.mark.parametrize(("status", "message", "shown"), [
    ("True", "", "True"),
    ("Unknown", "", "Unknown"),
    ("False", "Deployment default/web: quota; Service default/web: no", "False: Deployment default/web: quota"),
    ("False", HOSTILE, "False: a ]0;owned txt b"),
])  # fmt: skip
def test_a_placement_shows_whether_all_is_on_its_target_or_the_first_that_is_not(
    status: str, message: str, shown: str
) -> None:
    said = {"type": "Synced", "status": status, "reason": "ApplyFailed", "message": message}
    found = cells(WORKSPACE, "scheduling.kcp.io", "v1alpha1", "placements", {"status": {"conditions": [said]}})
    assert found["Synced"] == shown
    assert len(found["Synced"]) <= 60
    assert cells(WORKSPACE, "scheduling.kcp.io", "v1alpha1", "placements", {})["Synced"] is None


def test_a_workspace_shows_its_pin_as_long_as_that_counts() -> None:
    obj = {"metadata": {"name": "w"}, "spec": {"serve": {"commit": "0123456789abcdef"}}, "status": {"conditions": []}}

    def shown(reason: str, message: str = "", **serve: str) -> Any:
        said = {"type": "CommitApplied", "status": "True", "reason": reason, "message": message}
        spec = {"serve": {**obj["spec"]["serve"], **serve}}
        found = {**obj, "spec": spec, "status": {"conditions": [said]}}
        return cells(WORKSPACE, "tenancy.kcp.io", "v1alpha1", "workspaces", found)["Pinned"]

    assert shown("Pinned") == "0123456789"
    assert shown("Pinned", until="2030-01-01T00:00:00Z") == "0123456789 until 2030-01-01T00:00:00Z"
    assert shown("ContentInvalid", "held back, and pinned to 0123456789 by a: why") == "0123456789"
    assert shown("Applied") is None
    assert shown("ContentInvalid", "held back at the last good commit: pinned to what never was") is None


def test_sync_target_names_what_it_takes() -> None:
    taken = [{"group": "apps", "resource": r, "state": "Accepted"} for r in ("a", "b", "c", "d", "e")]
    status = {"syncedResources": [{"resource": "x", "state": "Pending"}, *taken]}
    found = cells(WORKSPACE, "workload.kcp.io", "v1alpha1", "synctargets", {"status": status})
    assert found["Synced API resources"] == "a.apps,b.apps,c.apps + 2 more..."


def test_table_of_custom_resources() -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 1},
    ]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}},
               "additionalPrinterColumns": columns}  # fmt: skip
    spec = {"group": "x.io", "names": {"plural": "ws", "kind": "W"}, "scope": "Cluster", "versions": [version]}
    [kind] = kinds.kinds_of_crd({"spec": spec})
    obj = {
        "metadata": {"name": "a", "creationTimestamp": clock.now()},
        "spec": {"size": 3, "on": "yes"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    made = tables.table(kind, [obj], include_object="None", list_meta={"resourceVersion": "5"})
    assert [c["name"] for c in made["columnDefinitions"]] == ["Name", "Size", "On", "Ready", "Since"]
    [row] = made["rows"]
    assert row["cells"][:4] == ["a", 3, None, "True"] and row["object"] is None
    made = tables.table(kind, [obj], list_meta={})
    assert made["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


DOCUMENT = {
    "a": {"b": [1, 2, 3], "c.d": "x", "e/f": "y"},
    "list": [{"type": "A", "n": 1, "v": "a"}, {"type": "B", "n": 5, "v": "b"}],
}


@pytest.mark.parametrize(("path", "found"), [
    (".a.b[0]", [1]), (".a.b[-1]", [3]), (".a.b[*]", [1, 2, 3]), (".a.b[0:2]", [1, 2]), (".a.b[0,2]", [1, 3]),
    (r".a.c\.d", ["x"]), (".a['c.d']", ["x"]), ('.a["e/f"]', ["y"]), (".a.e/f", ["y"]), ("{.a.b[1]}", [2]),
    ("$.a.b[1]", [2]), ("a.b[1]", [2]), ('.list[?(@.type=="B")].v', ["b"]), (".list[?(@.n>1)].v", ["b"]),
    (".list[?(@.type!='B')].v", ["a"]), (".list[?(@.nope)].v", []), (".list[*].v", ["a", "b"]), ("..v", ["a", "b"]),
    (".nope.more", []), (".a.b.c", []), (".", [DOCUMENT]),
])  # fmt: skip
def test_jsonpath(path: str, found: list[Any]) -> None:
    assert jsonpath.compile_path(path).find(DOCUMENT) == found


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a..", ".[?(a=b)]", ".list[?(@.a==b)]"])
def test_jsonpath_errors(path: str) -> None:
    with pytest.raises(ValueError, match="JSONPath"):
        jsonpath.compile_path(path)


def test_selectors_as_text() -> None:
    expressions = [{"key": "t", "operator": "In", "values": ["b", "a"]}, {"key": "x", "operator": "DoesNotExist"}]
    assert selector({"matchLabels": {"a": "b"}, "matchExpressions": expressions}) == "a=b,t in (a,b),!x"
    assert selector({}) == selector(None) == "<none>"
    assert selector({"app": "web"}) == "app=web"

"""What every workspace has without declaring it, and what ships with Treeplane."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.conditions import get
from apiserver.registry import strategy
from apiserver.registry.kinds import root_builtins
from reconciler.plan import computed, system
from reconciler.plan.computed import WorkspaceFacts

FACTS = WorkspaceFacts(
    path="root:shop:web",
    cluster="abcdefghijklmnop",
    type_name="team",
    type_path="root",
    origin_time="2026-01-01T00:00:00Z",
)
HELD = FACTS._replace(problems=("a.yaml:1: wrong", "b.yaml:2: worse"))
NEVER = HELD._replace(served=False)


@pytest.mark.parametrize(
    ("facts", "phase", "applied", "initialized", "begins"),
    [
        (FACTS, "Ready", "True", "True", "all that was judged of it is served"),
        (HELD, "Ready", "False", "True", "held back at the last good commit: "),
        (NEVER, "Initializing", "False", "False", "never had a good commit: "),
    ],
)
def test_the_status_of_a_workspace(
    facts: WorkspaceFacts, phase: str, applied: str, initialized: str, begins: str
) -> None:
    status = computed.status(facts)
    assert status["phase"] == phase
    types = [c["type"] for c in status["conditions"]]
    assert types == sorted(types)
    commit = get(status["conditions"], "CommitApplied")
    loaded = get(status["conditions"], "WorkspaceInitialized")
    assert commit is not None
    assert loaded is not None
    assert (commit["status"], loaded["status"]) == (applied, initialized)
    assert commit["message"].startswith(begins)
    assert all(problem in commit["message"] for problem in facts.problems)


def test_what_did_not_turn_is_so_since_the_workspace_came() -> None:
    for facts in (FACTS, HELD, NEVER):
        assert {c["lastTransitionTime"] for c in computed.conditions(facts)} == {FACTS.origin_time}


def test_the_logical_cluster_names_path_and_type() -> None:
    made = computed.logical_cluster(FACTS)
    assert made["metadata"]["name"] == "cluster"
    assert made["metadata"]["annotations"] == {
        "kcp.io/path": "root:shop:web",
        "internal.tenancy.kcp.io/type": "root:team",
        "treeplane.dev/origin": "system",
        "core.kcp.io/shard": "root",
    }
    assert made["spec"]["owner"]["name"] == "web"


def test_root_has_no_owner() -> None:
    assert "owner" not in computed.logical_cluster(FACTS._replace(path="root"))["spec"]


def test_default_bindings_are_named_after_workspace_and_export() -> None:
    names = {
        computed.default_binding(cluster, path, export)["metadata"]["name"]
        for cluster in ("a", "b")
        for path in ("root:x", "root:y")
        for export in ("kubernetes", "other")
    }
    assert len(names) == 8
    assert all(name == name.lower() and len(name.rpartition("-")[2]) == 5 for name in names)


@pytest.mark.parametrize("path", ["root", system.COMPUTE])
def test_what_ships_passes_its_own_rules(path: str) -> None:
    shipped = system.manifests(path)
    assert shipped
    for manifest in shipped:
        check(manifest)


def test_what_is_computed_passes_its_own_rules() -> None:
    check(computed.default_namespace())
    check({**computed.logical_cluster(FACTS), "status": computed.status(FACTS)})
    check(computed.default_binding(FACTS.cluster, system.COMPUTE, system.EXPORT))


def test_other_workspaces_get_nothing_shipped() -> None:
    assert system.manifests("root:shop") == []
    assert set(system.shipped_workspaces()) == {system.COMPUTE}


def test_the_compute_export_names_each_of_its_schemas() -> None:
    *schemas, export = system.compute_export()
    assert [each["schema"] for each in export["spec"]["resources"]] == [s["metadata"]["name"] for s in schemas]
    assert len({s["metadata"]["name"] for s in schemas}) == len(system.WORKLOADS)


def check(manifest: dict[str, Any]) -> None:
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind = root_builtins().by_kind(group, version, manifest["kind"])
    assert kind is not None
    assert strategy.unknown_fields(kind, manifest) == []
    assert strategy.prepare(kind, manifest) == []

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.admission.writes import read_only, stored
from apiserver.model.errors import StatusError
from apiserver.registry.builtins.served import workspace_builtins
from apiserver.registry.rest_options import Admit
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import WorkspaceRecord

RECORD = WorkspaceRecord("root:shop", "abc", "root", directory="workspaces/root/shop")


def kind(group: str, resource: str) -> ServedKind:
    found = workspace_builtins().preferred(group, resource)
    assert found is not None
    return found


def refused(live: dict[str, Any] | None) -> StatusError:
    with pytest.raises(StatusError) as raised:
        read_only(kind("", "configmaps"), RECORD)("update", "a", live)
    assert raised.value.code == 403
    return raised.value


def annotated(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {f"treeplane.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}}}


@pytest.mark.parametrize(
    ("live", "advice"),
    [
        (None, "add a manifest to workspaces/root/shop"),
        (annotated(source_path="workspaces/root/shop/a.yaml"), "edit workspaces/root/shop/a.yaml"),
        (annotated(origin="runtime"), "a controller made it"),
        (annotated(origin="system"), "ships with Treeplane"),
        ({"metadata": {}}, "add a manifest to workspaces/root/shop"),
    ],
)
def test_a_refusal_says_what_to_do(live: dict[str, Any] | None, advice: str) -> None:
    assert advice in refused(live).message


def test_a_workspace_that_is_not_made_is_a_file_to_commit() -> None:
    with pytest.raises(StatusError, match=r"commit workspaces/root/shop/web/workspace\.yaml, which may be empty"):
        read_only(kind("tenancy.kcp.io", "workspaces"), RECORD)("create", "web", None)


@pytest.mark.parametrize(
    ("group", "resource"), [("", "events"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases")]
)
def test_runtime_kinds_pass(group: str, resource: str) -> None:
    read_only(kind(group, resource), RECORD)("create", "a", None)


@pytest.mark.parametrize("live", [None, {"metadata": {}}, annotated(origin="runtime")])
def test_with_store_all_is_written(live: dict[str, Any] | None) -> None:
    stored(kind("", "configmaps"), RECORD)("update", "a", live)


@pytest.mark.parametrize(
    ("live", "advice"),
    [
        (annotated(source_path="workspaces/root/shop/a.yaml"), "edit workspaces/root/shop/a.yaml"),
        (annotated(origin="system"), "ships with Treeplane"),
    ],
)
def test_with_store_what_git_declares_stays_gits(live: dict[str, Any], advice: str) -> None:
    with pytest.raises(StatusError) as raised:
        stored(kind("", "configmaps"), RECORD)("update", "a", live)
    assert raised.value.code == 403
    assert advice in raised.value.message


@pytest.mark.parametrize("policy", [read_only, stored])
def test_what_a_commit_took_away_may_be_let_go(policy: Callable[..., Admit]) -> None:
    live = {"metadata": {"name": "a", "annotations": {"treeplane.dev/origin": "removed"}}}
    policy(kind("", "configmaps"), RECORD)("update", "a", live)

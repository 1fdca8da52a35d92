"""A cluster by its administrator's kubectl: what is said where that fails, and what it is given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.commands.failure import Failure
from reconciler.commands.targeting.admincluster import AdminCluster

OBJECT: dict[str, Any] = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "n"}}


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program of that text in place of kubectl; the cluster that it reaches."""

    def put(text: str) -> AdminCluster:
        program = tmp_path / "bin" / "kubectl"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/typed\n{text}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        (tmp_path / "kubeconfig").write_text("{}")
        return AdminCluster(tmp_path / "kubeconfig", "prod")

    return put


def test_kubectl_is_asked_with_that_kubeconfig_and_context_alone(kubectl: Any, tmp_path: Path) -> None:
    assert kubectl("echo '{\"items\": []}'").get("leases") == []
    assert (tmp_path / "typed").read_text() == f"--kubeconfig {tmp_path}/kubeconfig --context prod get leases -o json\n"


def test_what_kubectl_refuses_is_told_in_its_words(kubectl: Any) -> None:
    with pytest.raises(Failure, match="kubectl get nodes -o json: error: no such thing"):
        kubectl("echo 'error: no such thing' >&2; exit 1").get("nodes")
    with pytest.raises(Failure, match="does not reach the cluster"):
        kubectl("exit 1").sign_in()


@pytest.mark.parametrize("text", ["", "printf 'a\\nb'", "head -c 20000 /dev/zero | tr '\\0' a"])
def test_what_is_no_token(kubectl: Any, text: str) -> None:
    with pytest.raises(Failure, match="something else"):
        kubectl(text).token("n", "a", 1)


def test_what_is_there_already_is_unchanged(kubectl: Any) -> None:
    there = '{"kind": "ServiceAccount", "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"}}'
    done = kubectl(f"echo '{there}'").apply([OBJECT])
    assert [(each.name, str(each.change)) for each in done] == [("ServiceAccount n/a", "unchanged")]


def test_without_kubectl_or_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Failure, match="there is no file"):
        AdminCluster(tmp_path / "none", "")
    (tmp_path / "kubeconfig").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match="no kubectl in PATH"):
        AdminCluster(tmp_path / "kubeconfig", "")

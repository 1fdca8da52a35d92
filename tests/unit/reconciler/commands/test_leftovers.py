"""What a fleet that began with new identities left on its targets is named, and left alone."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from apiserver.model.commits import parse
from reconciler.commands.leftovers import Leftovers
from reconciler.controllers.failures import Expected
from reconciler.syncing import inventory
from reconciler.syncing.client import TargetPage
from reconciler.syncing.inventory import Inventory

OURS, ANOTHERS = "1" * 40, "2" * 40


class Target:
    """Lists inventories; writes are none of its methods."""

    def __init__(self, *inventories: dict[str, Any]) -> None:
        self.items = list(inventories)
        self.asked: list[str] = []
        self.silent = False

    def list(self, where: str, selector: str = "") -> Iterator[TargetPage]:
        self.asked.append(f"{where} {selector}")
        if self.silent:
            raise Expected("no answer")
        yield TargetPage(self.items, 1, "1")


def held(namespace: str, workspace: str, commit: str) -> dict[str, Any]:
    return inventory.parent(namespace, Inventory(workspace, parse(commit)), {"internal.workload.kcp.io/cluster": "old"})


def looked(target: Target) -> tuple[Leftovers, list[str]]:
    syncer = SimpleNamespace(client=target, site=SimpleNamespace(identity=SimpleNamespace(name="eu")))
    told: list[str] = []
    repo = SimpleNamespace(has=lambda commit: commit == OURS)
    return Leftovers(lambda: {"key": syncer}, repo, told.append), told  # type: ignore[arg-type, dict-item]


def test_what_the_fleet_applied_before_is_named_once() -> None:
    target = Target(held("kcp-a", "root:shop:web", OURS), held("kcp-b", "root:else", ANOTHERS), held("kcp-c", "x", ""))
    left, told = looked(target)
    left.look()
    left.look()
    assert target.asked == ["/api/v1/configmaps internal.workload.kcp.io/cluster,internal.workload.kcp.io/cluster!=key"]
    [text] = told
    assert "sync target eu still runs 1 namespace of this fleet" in text
    assert "kcp-a: root:shop:web at 1111111111" in text
    assert text.endswith("kubectl delete namespace kcp-a")


def test_a_target_that_does_not_answer_is_asked_again() -> None:
    target = Target(held("kcp-a", "root:shop:web", OURS))
    left, told = looked(target)
    target.silent = True
    left.look()
    assert told == []
    target.silent = False
    left.look()
    assert len(told) == 1


def test_a_target_cannot_put_words_into_the_command() -> None:
    lies = held("a; rm -rf /", "root:x", OURS), held("kcp-a", "root:x\n\nkubectl delete node --all", OURS)
    left, told = looked(Target(*lies))
    left.look()
    [text] = told
    assert "rm -rf" not in text
    assert [line for line in text.splitlines() if line.strip().startswith("kubectl")] == [
        "  kubectl delete namespace kcp-a"
    ]

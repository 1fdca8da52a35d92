"""What PodDisruptionBudgets of an embedded target say."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry import eviction
from apiserver.registry.rest_options import Collection, DeleteOptions
from reconciler.standin.disruptions import Disruptions

BUDGETS = "poddisruptionbudgets.policy"


def budget(**spec: Any) -> Any:
    spec.setdefault("selector", {"matchLabels": {"app": "web"}})
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {}, "spec": spec}


def deployment(replicas: int) -> Any:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": spec}


def numbers(target: Any) -> tuple[int, ...]:
    status = target.status(BUDGETS, "b")
    names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    return tuple(status.get(name, -1) for name in names)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (4, 4, 3, 1)),
        ({"minAvailable": "50%"}, (4, 4, 2, 2)),
        ({"maxUnavailable": 1}, (4, 4, 3, 1)),
        ({"maxUnavailable": "30%"}, (4, 4, 2, 2)),
        ({"minAvailable": 9}, (4, 4, 9, 0)),
        ({"minAvailable": 0, "selector": {"matchLabels": {"app": "other"}}}, (0, 0, 0, 0)),
    ],
)
def test_how_many_may_go(target: Any, spec: Any, expected: Any) -> None:
    target.create(deployment(4), name="web")
    target.create(budget(**spec), name="b")
    target.eventually(lambda: numbers(target) == expected)
    [condition] = target.status(BUDGETS, "b")["conditions"]
    assert condition["reason"] == ("SufficientPods" if expected[3] else "InsufficientPods")
    assert target.status(BUDGETS, "b")["observedGeneration"] == 1
    before = target.quiet()
    target.restart()
    assert target.quiet() == before


def test_it_follows_pods_and_changes(target: Any) -> None:
    target.create(budget(minAvailable=1), name="b")
    target.eventually(lambda: numbers(target) == (0, 0, 1, 0))
    target.create(deployment(2), name="web")
    target.eventually(lambda: numbers(target) == (2, 2, 1, 1))
    target.update(BUDGETS, "b", minAvailable=2)
    target.eventually(lambda: numbers(target) == (2, 2, 2, 0))
    assert target.status(BUDGETS, "b")["observedGeneration"] == 2


def evict(target: Any, name: str) -> None:
    kinds = target.catalog.kinds("target")
    pods, budgets = (
        Collection(target.store, kinds.preferred(*which), kinds, "target")
        for which in (("", "pods"), ("policy", "poddisruptionbudgets"))
    )
    eviction.evict(pods, budgets, "default", name, DeleteOptions(grace=0))


def test_an_eviction_while_pods_are_counted_is_not_forgotten(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another would be allowed in its place."""
    target.create(deployment(2), name="web")
    target.create(budget(minAvailable=1), name="b")
    target.eventually(lambda: numbers(target) == (2, 2, 1, 1))
    first, second = target.names("pods")
    target.stop()
    controller = Disruptions(target.store)
    status, evicted = controller._status, list[str]()

    def meanwhile(*found: Any) -> Any:
        made = status(*found)
        if not evicted:
            evicted.append(first)
            evict(target, first)
        return made

    monkeypatch.setattr(controller, "_status", meanwhile)
    controller.reconcile(Key(BUDGETS, "target", "default", "b"))
    assert numbers(target)[-1] == 0
    with pytest.raises(StatusError, match="disruption budget"):
        evict(target, second)


def test_evictions_go_on_as_replacements_come(target: Any) -> None:
    target.create(deployment(2), name="web")
    target.create(budget(minAvailable=1), name="b")
    target.eventually(lambda: numbers(target) == (2, 2, 1, 1))
    first = set(target.names("pods"))
    for name in first:
        target.eventually(lambda: numbers(target) == (2, 2, 1, 1))
        evict(target, name)
    target.eventually(lambda: len(target.names("pods")) == 2 and not first & set(target.names("pods")))

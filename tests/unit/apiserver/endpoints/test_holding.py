"""A server that only observes answers reads, and writes with 503 and the holder's name."""

from __future__ import annotations

from typing import Any

import pytest

EVENTS = "/clusters/root/api/v1/namespaces/default/events"
MAPS = "/clusters/root/api/v1/namespaces/default/configmaps"
REVIEW = "/clusters/root/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.fixture
def observing(api: Any) -> Any:
    api.put_fleet(loaded=True, holder="c0ffee/17", writes="Store")
    api.put_workspace("root:lab", "labcluster000000", writes="Store", builtins="Kubernetes")
    return api


def an_event() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"namespace": "default"},
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", EVENTS),
        ("POST", f"{EVENTS}?dryRun=All"),
        ("PUT", f"{MAPS}/x"),
        ("PATCH", f"{MAPS}/x"),
        ("DELETE", f"{MAPS}/x"),
        ("DELETE", MAPS),
        ("POST", "/clusters/root:lab/api/v1/namespaces/default/pods/x/eviction"),
        ("POST", "/clusters/root:lab/api/v1/namespaces/default/bindings"),
    ],
)
def test_writes_are_the_holders(observing: Any, run: Any, method: str, path: str) -> None:
    before = observing.store.revision()
    kind = "application/merge-patch+json" if method == "PATCH" else ""
    answer = run(observing.call(method, path, an_event(), kind=kind))
    assert (answer.status, answer.json["reason"]) == (503, "ServiceUnavailable")
    assert answer.message == "the fleet is held by another server, c0ffee/17: this one only shows what it records"
    assert answer.headers["retry-after"] == "5"
    assert observing.store.revision() == before


def test_so_are_those_to_embedded_targets(observing: Any, run: Any) -> None:
    path = f"{observing.EDGE}/api/v1/namespaces/default/configmaps"
    assert run(observing.call("POST", path, {"metadata": {"name": "x"}})).status == 503


def test_reads_and_reviews_go_on(observing: Any, run: Any) -> None:
    assert run(observing.get(MAPS)).status == 200
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    assert run(observing.call("POST", REVIEW, review)).status == 201


def test_whoever_may_not_write_hears_that_first(observing: Any, run: Any) -> None:
    assert run(observing.call("POST", EVENTS, an_event(), user="alice")).status == 403


def test_the_holder_itself_writes(api: Any, run: Any) -> None:
    api.put_fleet(loaded=True, writes="Store")
    assert run(api.call("POST", EVENTS, an_event())).status == 201

"""What is indexed of Kubernetes' objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import codec, indexes
from apiserver.storage.declared import Index, entries, entry

AT = Key("pods", "c1", "default", "a")


def terms(index: Index, key: Key = AT, **obj: Any) -> list[str]:
    metadata = {"name": key.name, **obj.pop("metadata", {})}
    return sorted(entry(row).term for row in entries(index, key, codec.encode({"metadata": metadata, **obj})))


def test_an_owner_counts_in_its_own_workspace() -> None:
    references = [{"kind": "ReplicaSet", "name": "r", "uid": "u1"}, {"uid": "u2"}, {"uid": "u1"}, {"name": "no uid"}]
    assert terms(indexes.OWNERS, metadata={"ownerReferences": references}) == ["c1/u1", "c1/u2"]
    assert terms(indexes.OWNERS) == terms(indexes.OWNERS, metadata={"ownerReferences": []}) == []
    assert terms(indexes.OWNERS, data={"text": '"ownerReferences":[{"uid":"u1"}]'}) == []
    assert terms(indexes.OWNERS, spec={"ownerReferences": [{"uid": "u1"}]}) == []


@pytest.mark.parametrize("uid", [7, "", "a\0b", "\ud800", "x" * 5000])
def test_a_uid_that_is_none_names_nobody(uid: Any) -> None:
    value = b'{"metadata":{"ownerReferences":[{"uid":%s}]}}'
    assert entries(indexes.OWNERS, AT, value % json.dumps(uid).encode()) == set()


def test_what_has_finalizers_stands_under_its_workspace() -> None:
    bound = AT._replace(resource="pods:9f86")
    held = {"finalizers": ["example.io/hold"]}
    assert terms(indexes.FINALIZERS, bound, metadata=held) == [indexes.waiting("c1", "pods:9f86")]
    assert terms(indexes.FINALIZERS, bound, metadata={"finalizers": []}) == terms(indexes.FINALIZERS) == []
    # A namespace has some of its own.
    assert terms(indexes.FINALIZERS, spec={"finalizers": ["kubernetes"]}) == []
    assert terms(indexes.FINALIZERS, metadata=held, spec={"finalizers": ["kubernetes"]}) == ["c1/pods"]
    assert terms(indexes.FINALIZERS, metadata=held, spec={"finalizers": {"a": "b"}}) == ["c1/pods"]
    assert terms(indexes.FINALIZERS, metadata=held, data={"a": '"spec":{"finalizers":["x"]'}) == ["c1/pods"]


def test_what_is_ending_stands_under_its_resource() -> None:
    bound = AT._replace(resource="pods:9f86")
    assert terms(indexes.ENDING, bound, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}) == ["pods:9f86"]
    assert terms(indexes.ENDING, bound) == []
    assert terms(indexes.ENDING, bound, status={"deletionTimestamp": "2026-01-01T00:00:00Z"}) == []


def test_events_stand_in_the_order_in_which_they_were_written() -> None:
    key = AT._replace(resource="events")
    born = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    assert terms(indexes.WRITTEN, key, metadata=born) == ["events/2026-01-01T00:00:00Z"]
    again = [{"time": "2026-01-01T03:00:00+01:00"}, {"time": "2026-01-01T01:00:00.123456Z"}, {}]
    assert terms(indexes.WRITTEN, key, metadata=born | {"managedFields": again}) == ["events/2026-01-01T02:00:00Z"]
    assert terms(indexes.WRITTEN, key, metadata=born, lastTimestamp="2999-01-01T00:00:00Z") == [
        "events/2026-01-01T00:00:00Z"
    ]
    assert terms(indexes.WRITTEN, key) == []


def test_token_secrets_stand_under_their_account() -> None:
    key = AT._replace(resource="secrets")
    named = {"annotations": {indexes.TOKEN_ACCOUNT: "robot"}}
    assert terms(indexes.TOKENS, key, metadata=named, type=indexes.TOKEN_TYPE) == ["c1/default/robot"]
    assert terms(indexes.TOKENS, key, metadata=named, type="Opaque", data={"x": indexes.TOKEN_TYPE}) == []
    assert terms(indexes.TOKENS, key, type=indexes.TOKEN_TYPE) == []


def test_a_placement_stands_where_it_is_and_where_it_looks() -> None:
    at = Key(indexes.PLACEMENTS, "c1", "", "prod")
    annotations = {marks.SYNC_TARGET: "here", marks.LEAVING: "there,before"}
    found = terms(indexes.PLACED, at, metadata={"annotations": annotations}, spec={"locationWorkspace": "root:infra"})
    assert found == ["leaves/before", "leaves/there", "looks/root:infra", "runs/here"]
    assert terms(indexes.PLACED, at, spec={}) == terms(indexes.PLACED, at) == []

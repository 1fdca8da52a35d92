"""What the status branch has to have at once."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apiserver.model.keys import Internal, Key
from apiserver.registry.keptschemas import KEPT_SCHEMAS
from apiserver.storage.protocol import Change
from reconciler.statusbranch import urgency
from reconciler.statusbranch.urgency import Urgency

Object = dict[str, Any]
DEPLOYMENT = Key("deployments.apps:9f86", "c", "default", "web")
JOB = Key("jobs.batch:9f86", "c", "default", "migrate")
PLACEMENT = Key("placements.scheduling.kcp.io", "c", "", "p")
DONE = {"conditions": [{"type": "Complete", "status": "True"}]}


def an_object(status: Object | None = None, /, **metadata: Any) -> Object:
    found: Object = {"metadata": {"name": "web", "uid": "u", **metadata}, "spec": {"replicas": 1}}
    return {**found, "status": status} if status is not None else found


def change(key: Key, before: Object | None, after: Object | None) -> Change:
    value, previous = (orjson.dumps(v) if v is not None else None for v in (after, before))
    return Change(2, key, value, previous, 1, b"")


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        (DEPLOYMENT, None, an_object()),
        (DEPLOYMENT, an_object(), None),
        (DEPLOYMENT, an_object(), an_object(finalizers=["a/b"])),
        (DEPLOYMENT, an_object(), an_object(deletionTimestamp="2026-01-01T00:00:00Z")),
        (DEPLOYMENT, an_object(), an_object(annotations={"internal.scheduling.kcp.io/selected": "x"})),
        (DEPLOYMENT, an_object(), an_object(managedFields=[{"manager": "a"}])),
        (DEPLOYMENT, an_object(), {**an_object(), "spec": {"clusterIP": "10.0.0.1"}}),
        (JOB, an_object({"active": 1}), an_object(DONE)),
        (JOB, an_object(DONE), an_object()),
        (PLACEMENT, an_object({}), an_object({"selectedLocation": {"path": "root:a", "locationName": "eu"}})),
        (Key("workspaces.tenancy.kcp.io", "c", "", "w"), an_object({"phase": "A"}), an_object({"phase": "B"})),
        (Key(Internal.WORKSPACE, "c", "", ""), an_object(), an_object()),
    ],
)
def test_what_nobody_could_find_out_again_goes_at_once(key: Key, before: Object | None, after: Object | None) -> None:
    assert urgency.of(change(key, before, after)) == Urgency.URGENT


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        (DEPLOYMENT, an_object(), an_object({"replicas": 1})),
        (JOB, an_object(), an_object({"active": 1})),
        (JOB, an_object(), an_object({"conditions": [{"type": "Suspended", "status": "True"}]})),
        (PLACEMENT, an_object(), an_object({"conditions": [{"type": "Synced", "status": "True"}]})),
        (
            DEPLOYMENT,
            an_object(),
            an_object({"replicas": 1}, managedFields=[{"manager": "a", "subresource": "status"}]),
        ),
    ],
)
def test_statuses_can_be_observed_again(key: Key, before: Object, after: Object) -> None:
    assert urgency.of(change(key, before, after)) == Urgency.STATUS


def placed(cluster: str, before: bytes | None, after: bytes | None) -> Change:
    return Change(3, Key(Internal.WORKSPACE, cluster, "", ""), after, before, 2, b"")


STORED, DECLARED = b"root:lab:shop\n\0", b"root:lab:shop\n/"


def test_workspaces_that_no_commit_knows_of_are_told_by_what_stands_for_them() -> None:
    inside = change(Key("namespaces", "gone", "", "default"), an_object(), None)
    changes = [
        inside,
        placed("gone", STORED, None),
        placed("new", None, STORED),
        placed("declared", DECLARED, None),
        placed("taken", STORED, DECLARED),
        placed("taken", DECLARED, DECLARED),
    ]
    assert urgency.unrecorded(changes) == {"gone", "new"}
    assert urgency.of(inside) == Urgency.URGENT
    assert urgency.of(inside, urgency.unrecorded(changes)) == Urgency.NOTHING
    assert urgency.of(placed("declared", DECLARED, None), urgency.unrecorded(changes)) == Urgency.URGENT
    schema = change(Key(KEPT_SCHEMAS, "gone", "", "s"), None, an_object())
    assert urgency.of(schema, {"gone"}) == Urgency.URGENT, "which others are served with"


RUNTIME = {"annotations": {"treeplane.dev/origin": "runtime"}}


@pytest.mark.parametrize(
    ("key", "before", "after"),
    [
        (Key("events", "c", "default", "e"), None, an_object()),
        (Key("leases.coordination.k8s.io", "c", "default", "e"), an_object(), an_object(labels={"a": "b"})),
        (Key(Internal.INTENT, "c", "", "x"), None, an_object()),
        (Key("pods", "c", "default", "p"), an_object(**RUNTIME), an_object({"phase": "Running"}, **RUNTIME)),
        (Key("pods", "c", "default", "p"), None, an_object(**RUNTIME)),
        (DEPLOYMENT, an_object({"a": 1}), an_object({"a": 1})),
    ],
)
def test_of_what_leaves_no_file_nothing_is_written(key: Key, before: Object | None, after: Object | None) -> None:
    assert urgency.of(change(key, before, after)) == Urgency.NOTHING

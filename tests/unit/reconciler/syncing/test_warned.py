"""Warnings of a sync target come up to the objects that they are about, and nothing else of it does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apiserver.model.kinds import GroupResource
from reconciler.syncing.client import TargetEvent
from reconciler.syncing.errors import TargetRefused
from reconciler.syncing.upstream import Item
from reconciler.syncing.warned import Rate, Warnings, WarningTold, WarningWatch

Object = dict[str, Any]

WEB = Item(GroupResource("apps", "deployments"), "shop0", "default", "web")
HOME = "kcp-x1"
COPY = ("apps", "Deployment", HOME, "web", "u-web")


def owned(kind: str, name: str, uid: str, owner: tuple[str, str, str] | None = None) -> Object:
    metadata: Object = {"name": name, "uid": uid}
    if owner is not None:
        kind, name, uid = owner
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"kind": kind, "metadata": metadata}


class There:
    """A Deployment's copy, its ReplicaSet and a Pod of that."""

    def __init__(self) -> None:
        self.copies = {COPY: WEB}
        self.asked: list[str] = []
        self.objects = {
            "web-1": owned("ReplicaSet", "web-1", "u-rs", ("Deployment", "web", "u-web")),
            "web-1-a": owned("Pod", "web-1-a", "u-pod", ("ReplicaSet", "web-1", "u-rs")),
            "alone": owned("Pod", "alone", "u-alone"),
        }

    def is_home(self, namespace: str) -> bool:
        return namespace == HOME

    def copy(self, group: str, kind: str, namespace: str, name: str, uid: str) -> Item | None:
        return self.copies.get((group, kind, namespace, name, uid))

    def owned(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        assert (group, namespace) in {("", HOME), ("apps", HOME)}
        self.asked.append(f"{kind}/{name}")
        return self.objects.get(name)


POD = {"apiVersion": "v1", "kind": "Pod", "namespace": HOME, "name": "web-1-a", "uid": "u-pod"}


def event(about: Any = POD, message: Any = "no room", reason: Any = "FailedScheduling", **more: Any) -> Object:
    metadata = {"name": "e.1", "uid": "u-e", "resourceVersion": "7", "namespace": HOME}
    said = {"metadata": metadata, "involvedObject": about, "reason": reason, "message": message, "type": "Warning"}
    return {**said, **more}


def test_a_pods_warning_is_its_deployments() -> None:
    there = There()
    warnings = Warnings(there)
    assert warnings.told(event()) == WarningTold(WEB, "FailedScheduling", "Pod web-1-a: no room")
    assert there.asked == ["Pod/web-1-a", "ReplicaSet/web-1"]
    assert warnings.told(event(message="still")) == WarningTold(WEB, "FailedScheduling", "Pod web-1-a: still")
    assert len(there.asked) == 2  # it is known whose it is
    own = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": HOME, "name": "web", "uid": "u-web"}
    assert warnings.told(event(own)) == WarningTold(WEB, "FailedScheduling", "no room")


def test_a_copy_that_is_not_there_any_more_is_told_nothing() -> None:
    there = There()
    warnings = Warnings(there)
    assert warnings.told(event()) is not None
    there.copies.clear()
    assert warnings.told(event()) is None


@pytest.mark.parametrize(
    "lie",
    [
        event({**POD, "uid": "another"}),
        event({**POD, "namespace": "kube-system"}),
        event({**POD, "namespace": "kube-system"}, metadata={**event()["metadata"], "namespace": "kube-system"}),
        event({**POD, "name": "alone", "uid": "u-alone"}),
        event({**POD, "name": "absent"}),
        event({**POD, "kind": 5}),
        event({**POD, "name": "x" * 300}),
        event({**POD, "uid": ""}),
        event("a text"),
        event(None),
        event(message=5),
        event(message=None),
        event(reason="CopyTaken"),  # only the server says so
        event(reason="Held"),
        event(reason="SourceFollowed"),
        event(reason="has blanks \x1b[31m"),
        event(reason=["x"]),
        event(type="Normal"),
    ],
)
def test_what_fits_no_copy_is_told_to_nobody(lie: Object) -> None:
    assert Warnings(There()).told(lie) is None


def test_owners_that_lie_lead_nowhere() -> None:
    there = There()
    there.objects["web-1-a"] = owned("Pod", "web-1-a", "u-pod", ("Deployment", "web", "another"))
    assert Warnings(there).told(event()) is None
    there.objects["web-1-a"] = owned("Pod", "web-1-a", "u-pod", ("Pod", "web-1-a", "u-pod"))
    assert Warnings(there).told(event()) is None
    assert len(there.asked) < 10
    there.objects["web-1-a"] = {"metadata": {"name": "web-1-a", "uid": "u-pod", "ownerReferences": ["x", {}, 5]}}
    assert Warnings(there).told(event()) is None


def test_names_of_nodes_are_taken_out() -> None:
    told = Warnings(There()).told(
        event(
            message='volume "v" is on node-7, and node "ip-10-0-0-9.local" has none; node-77 \x1b[31m',
            source={"component": "kubelet", "host": "node-7"},
        )
    )
    assert told is not None
    assert told.text == 'Pod web-1-a: volume "v" is on a node, and node (a node) has none; node-77 [31m'


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_is_asked_about_and_told_so_often_and_no_more() -> None:
    clock, there = Clock(), There()
    warnings = Warnings(there, Rate(3, 1.0, clock), Rate(5, 1.0, clock))
    assert sum(warnings.told(event()) is not None for _ in range(1000)) == 5
    strangers = [event({**POD, "name": "alone", "uid": f"u{n}"}) for n in range(1000)]
    assert [each for each in strangers if warnings.told(each) is not None] == []
    assert len(there.asked) == 3
    clock.now = 2.0
    assert sum(warnings.told(event()) is not None for _ in range(1000)) == 2


class Source:
    """A target: `rounds` are what its watches answer, one after the other; then it hangs until the end."""

    def __init__(self, *rounds: Callable[[], Iterator[TargetEvent]]) -> None:
        self.rounds, self.from_, self.fields = [*rounds], list[str](), set[str]()
        self.closed = threading.Event()

    def revision(self, where: str, fields: str) -> str:
        assert where == "/api/v1/events"
        self.fields.add(fields)
        return f"now{len(self.from_)}"

    def watch(self, where: str, selector: str, revision: str, fields: str = "") -> Iterator[TargetEvent]:
        self.from_.append(revision)
        self.fields.add(fields)
        assert (where, selector) == ("/api/v1/events", "")
        if self.rounds:
            yield from self.rounds.pop(0)()
        else:
            self.closed.wait(60)


def test_it_begins_with_what_happens_now_and_begins_anew_where_a_target_forgot(
    eventually: Callable[..., None],
) -> None:
    def first() -> Iterator[TargetEvent]:
        yield TargetEvent("ADDED", event())
        yield TargetEvent("DELETED", event())
        yield TargetEvent("BOOKMARK", {"metadata": {"resourceVersion": "9"}})

    def forgot() -> Iterator[TargetEvent]:
        yield TargetEvent("ERROR", {"code": 410})

    def refuses() -> Iterator[TargetEvent]:
        raise TargetRefused(403, "Forbidden", "no right")
        yield

    source, told = Source(first, forgot, refuses), list[WarningTold]()
    watch = WarningWatch(source, Warnings(There()), told.append, longest=0.01)
    watch.start()
    eventually(lambda: len(source.from_) == 4)
    watch.stop()
    source.closed.set()
    watch.join(10)
    assert not watch.is_alive()
    assert source.from_ == ["now0", "9", "now2", "now3"]
    assert source.fields == {"type=Warning"}
    assert [each.reason for each in told] == ["FailedScheduling"]

"""Which Jobs are applied, and when their copies go. The target and the status branch are the test's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from apiserver.model import clock
from reconciler.plan.jobs import JOBS
from reconciler.syncing.jobs import Jobs
from reconciler.syncing.live import Live
from reconciler.syncing.render import OF
from reconciler.syncing.site import Ledger
from reconciler.syncing.upstream import Item

ITEM = Item(JOBS, "shop0", "web", "once")
KIND: Any = SimpleNamespace(version="v1")
COMPLETE = [{"type": "Complete", "status": "True", "lastTransitionTime": clock.now()}]


class World:
    """One Job upstream and, perhaps, its copy on one target."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.obj: dict[str, Any] = {"metadata": {"uid": "run-1", "resourceVersion": "7"}, "spec": {}, "status": {}}
        self.live: Live | None = None
        self.copy: dict[str, Any] | None = None
        self.ledger = Ledger()
        home = SimpleNamespace(get=lambda *_: SimpleNamespace(name="kcp-x"))
        client = SimpleNamespace(get=lambda _: self.copy, delete=lambda _, uid: self.happened.append(f"delete {uid}"))
        there: Any = SimpleNamespace(
            ledger=self.ledger, homes=home, live=lambda _: self.live, version=lambda _, version: version, client=client
        )
        self.jobs = Jobs(
            there,
            SimpleNamespace(get=lambda *_: self.obj),  # type: ignore[arg-type]
            SimpleNamespace(report=self.report),  # type: ignore[arg-type]
            lambda revision: self.happened.append(f"durable {revision}"),
            lambda _, seconds: self.happened.append("later"),
        )

    def report(self, _: Item, __: Any, ___: Any, live: dict[str, Any]) -> None:
        self.obj = {**self.obj, "status": live["status"]}

    def there(self, *, of: str = "run-1", conditions: Any = (), fresh: bool = False) -> None:
        metadata = {"uid": "copy", "annotations": {OF: of}}
        self.copy = {"metadata": metadata, "status": {"conditions": list(conditions)}}
        self.live = Live("copy", "1", "", of, False, self.copy if fresh else None)

    def ended(self, **spec: Any) -> None:
        self.obj = {**self.obj, "spec": spec, "status": {"conditions": COMPLETE}}

    def runs(self) -> bool:
        return self.jobs.runs(ITEM, KIND, self.obj)


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_that_has_not_ended_is_applied(world: World) -> None:
    assert world.runs()
    world.there()
    assert world.runs()
    world.there(of="")
    assert world.runs(), "a copy that does not say whose it is"


def test_one_that_has_ended_is_not_even_where_nothing_is(world: World) -> None:
    world.ended(ttlSecondsAfterFinished=0)
    assert not world.runs()
    assert world.happened == []


def test_its_copy_goes_after_its_end_is_on_record(world: World) -> None:
    world.ended(ttlSecondsAfterFinished=0)
    world.there(conditions=COMPLETE)
    assert not world.runs()
    assert world.happened == ["durable 7", "delete copy"]


def test_its_copy_stays_for_its_time_to_live(world: World) -> None:
    world.ended(ttlSecondsAfterFinished=3600)
    world.there(conditions=COMPLETE)
    assert not world.runs()
    assert world.happened == ["later"]
    world.ended()
    assert not world.runs()
    assert world.happened == ["later"], "without one it stays for good"


def test_a_copy_that_still_runs_elsewhere_is_let_run(world: World) -> None:
    """A namespace of several targets: the first one's end is the Job's."""
    world.ended(ttlSecondsAfterFinished=0)
    world.there()
    assert not world.runs()
    assert world.happened == []


def test_the_copy_of_an_earlier_job_goes_first(world: World) -> None:
    world.there(of="run-0", conditions=COMPLETE, fresh=True)
    assert not world.runs()
    assert world.happened == ["delete copy"]
    assert world.obj["status"] == {}, "its end is not this one's"
    world.live = None
    assert world.runs()


def test_an_end_that_was_seen_as_the_copy_went_counts(world: World) -> None:
    world.there(conditions=COMPLETE)
    gone, world.live = world.copy, None
    assert gone is not None
    world.ledger.ends[ITEM] = gone
    assert not world.runs()
    assert world.obj["status"] == {"conditions": COMPLETE}
    assert world.ledger.ends == {}


def test_the_end_of_an_earlier_job_does_not(world: World) -> None:
    world.there(of="run-0", conditions=COMPLETE)
    gone, world.live = world.copy, None
    assert gone is not None
    world.ledger.ends[ITEM] = gone
    assert world.runs()
    assert world.obj["status"] == {}

"""Jobs on real clusters: each runs once, wherever it stands and whoever deletes its copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.realsyncing import JOBS, Downstream, World

from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.marks import LEAVING
from reconciler.syncing.service import Syncing
from reconciler.syncing.upstream import Item

pytestmark = [pytest.mark.clusters, pytest.mark.slow]


class Runs:
    """The uids of all copies of Jobs that a cluster was ever given."""

    def __init__(self, down: Downstream) -> None:
        self._down = down
        self.seen: dict[str, set[str]] = {}

    def now(self) -> set[str]:
        """The names of those that are there; notes their uids."""
        found = self._down.list("jobs")
        for name, job in found.items():
            self.seen.setdefault(name, set()).add(job["metadata"]["uid"])
        return set(found)

    def times(self, name: str) -> int:
        return len(self.seen.get(name, ()))


def test_a_job_runs_once_and_its_copy_goes_when_its_end_is_on_record(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    world.place()
    world.config("settings", a="b")
    runs = Runs(west)
    syncing()
    eventually(lambda: west.names("configmaps") == {"settings"}, 20)
    world.recorded.clear()
    brief, lasting = world.job("brief", ttlSecondsAfterFinished=0), world.job("lasting")
    eventually(lambda: world.ended(brief) and world.ended(lasting), 60)
    eventually(lambda: int(world.get(brief)["metadata"]["resourceVersion"]) in world.awaited, 20)
    assert runs.now() == {"brief", "lasting"}, "the end is not on record yet"
    assert "ttlSecondsAfterFinished" not in west.list("jobs")["brief"]["spec"]
    world.recorded.set()
    eventually(lambda: runs.now() == {"lasting"}, 20)

    # Not by drift, not for a change upstream, not after a restart, not for a copy that somebody deleted.
    west.cluster.kubectl("delete", "job", "lasting", "-n", west.namespace, "--wait=true")
    world.job("brief", ttlSecondsAfterFinished=0, suspend=False)
    world.config("settings", a="c")
    eventually(lambda: west.list("configmaps")["settings"]["data"] == {"a": "c"})
    again = syncing()
    world.config("settings", a="d")
    eventually(lambda: west.list("configmaps")["settings"]["data"] == {"a": "d"}, 20)
    key = sync_target_key("infra0", "west")
    eventually(lambda: not again.syncers()[key].queue.pending())
    assert runs.now() == set()
    assert (runs.times("brief"), runs.times("lasting")) == (1, 1)
    assert world.ended(brief)
    assert world.ended(lasting)

    # Made anew it is another run, whose predecessor's copy goes first.
    world.job("third")
    third = Key(JOBS, "shop0", "web", "third")
    eventually(lambda: world.ended(third), 60)
    assert runs.now() == {"third"}
    world.delete(third)
    world.job("third")
    eventually(lambda: runs.now() == {"third"} and runs.times("third") == 2 and world.ended(third), 60)


def test_a_job_that_is_deleted_as_it_ends_is_not_run_again(
    world: World, west: Downstream, syncing: Callable[[], Syncing], eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cleans up there may be faster than we are: the last that is seen of a Job is its end."""
    world.place()
    runs = Runs(west)
    job = world.job()
    made = syncing()
    eventually(lambda: runs.now() == {"once"}, 30)
    syncer = made.syncers()[sync_target_key("infra0", "west")]
    monkeypatch.setattr(syncer, "_sync", lambda _: None)
    eventually(lambda: west.list("jobs")["once"]["status"].get("succeeded") == 1, 60)
    west.cluster.kubectl("delete", "job", "once", "-n", west.namespace, "--wait=true")
    item = Item(GroupResource("batch", "jobs"), "shop0", "web", "once")
    eventually(lambda: syncer.site.live(item) is None)
    assert not world.ended(job)
    monkeypatch.undo()
    syncer.namespace("shop0", "web")
    eventually(lambda: world.ended(job), 20)
    eventually(lambda: not syncer.queue.pending())
    assert runs.now() == set()
    assert runs.times("once") == 1


def test_a_job_that_has_ended_does_not_move_along(
    world: World, west: Downstream, east: Downstream, syncing: Callable[[], Syncing], eventually: Any
) -> None:
    world.put("synctargets.workload.kcp.io", "infra0", "east", labels={"name": "east"}, spec={"unschedulable": True})
    placement = world.place()
    world.config("settings", a="b")
    job = world.job()
    syncing()
    eventually(lambda: world.ended(job), 60)
    there = Runs(east)
    world.target("east")
    evict = {"evictAfter": "2026-01-01T00:00:00Z"}
    world.put("synctargets.workload.kcp.io", "infra0", "west", labels={"name": "west"}, spec=evict)
    eventually(lambda: east.names("configmaps") == {"settings"}, 30)
    eventually(lambda: world.annotation(placement, LEAVING) == "", 60)
    assert not west.list("jobs")
    assert there.now() == set()
    assert world.ended(job)

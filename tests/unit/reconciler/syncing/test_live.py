"""The cache of what is on a target, and the watcher that feeds it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from apiserver.model.kinds import GroupResource
from reconciler.syncing.errors import Unreachable
from reconciler.syncing.live import Cache, Watcher


def obj(name: str = "a", revision: int = 1, uid: str = "u", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(revision), **metadata}}


def test_echoes_and_older_states_are_no_news() -> None:
    cache = Cache()
    assert cache.saw(obj(revision=9))
    assert not cache.saw(obj(revision=9))
    assert not cache.saw(obj(revision=10**0))
    assert cache.saw(obj(revision=10))


def test_the_object_is_kept_until_it_is_compared() -> None:
    cache = Cache()
    cache.saw(obj(revision=9))
    cache.compared("n", "a", "8", b"digest", True)
    held = cache.get("n", "a")
    assert held is not None
    assert held.fresh is not None, "a newer state came meanwhile"
    cache.compared("n", "a", "9", b"digest", True)
    assert (held.fresh, held.digest, held.healthy) == (None, b"digest", True)
    cache.saw(obj(revision=10))
    again = cache.get("n", "a")
    assert again is not None
    assert again.fresh is not None
    assert again.digest == b"digest", "so that a change upstream is told from drift"
    cache.saw(obj(revision=11, uid="another"))
    other = cache.get("n", "a")
    assert other is not None
    assert other.digest == b""


def test_an_answer_that_comes_after_the_deletion_does_not_bring_it_back() -> None:
    cache = Cache()
    cache.saw(obj(revision=3))
    assert cache.drop("n", "a", "u", "5")
    assert not cache.saw(obj(revision=4))
    assert cache.get("n", "a") is None
    assert cache.saw(obj(revision=6, uid="new"))
    assert not cache.drop("n", "a", "u", "7"), "another object of that name"


class Target:
    """Answers lists and watches from a script; waits for the test at its end."""

    def __init__(self) -> None:
        self.lists: list[list[dict[str, Any]] | Exception] = []
        self.watches: list[list[tuple[str, dict[str, Any]]]] = []
        self.asked: list[str] = []
        self.closed = threading.Event()

    def list(self, where: str, selector: str = "", limit: int = 500) -> tuple[list[dict[str, Any]], str]:
        self.asked.append("list")
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer, "1"

    def watch(self, where: str, selector: str, revision: str) -> Iterator[tuple[str, dict[str, Any]]]:
        self.asked.append(f"watch {revision}")
        if not self.watches:
            self.closed.wait(5)
            return
        yield from self.watches.pop(0)


def test_a_watcher_follows_and_starts_over_when_its_revision_is_too_old(eventually: Any) -> None:
    target = Target()
    gone = {"code": 410, "reason": "Expired"}
    target.lists = [Unreachable("connection refused"), [obj("a", 1), obj("b", 1)], [obj("a", 7)]]
    target.watches = [
        [("MODIFIED", obj("a", 3)), ("BOOKMARK", {"metadata": {"resourceVersion": "5"}})],
        [("DELETED", obj("b", 6)), ("ADDED", obj("c", 6)), ("ERROR", gone)],
    ]
    changed: list[str] = []
    watcher = Watcher(target, GroupResource("", "configmaps"), "v1", "l=v", lambda _, name: changed.append(name))
    watcher.FIRST_PAUSE = 0.01
    watcher.start()
    eventually(lambda: target.asked[-1:] == ["watch 1"] and target.asked.count("list") == 3)
    watcher.stop()
    target.closed.set()
    watcher.join(5)
    assert target.asked == ["list", "list", "watch 1", "watch 5", "list", "watch 1"]
    assert changed == ["a", "b", "a", "b", "c", "c", "a"]
    assert sorted(watcher.cache.keys()) == [("n", "a")]

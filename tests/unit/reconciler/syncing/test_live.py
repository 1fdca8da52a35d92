"""The cache of what is on a target."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.syncing.errors import Excessive
from reconciler.syncing.live import Allowance, Cache


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


def test_what_nobody_has_compared_yet_is_kept_as_far_as_there_is_room() -> None:
    cache = Cache(Allowance(objects=3, size=100))
    assert cache.saw(obj("a"), 60)
    assert cache.saw(obj("b"), 60)
    a, b = cache.get("n", "a"), cache.get("n", "b")
    assert a is not None
    assert b is not None
    assert (a.fresh is None, b.fresh is None) == (False, True)
    cache.compared("n", "a", "1", b"digest", True)
    assert cache.saw(obj("b", 2), 60), "there is room again"
    b = cache.get("n", "b")
    assert b is not None
    assert b.fresh is not None
    assert cache.saw(obj("a", 2), 60)
    a = cache.get("n", "a")
    assert a is not None
    assert (a.fresh, a.digest) == (None, b""), "what it is in step with is not known any more"


def test_more_objects_than_any_target_has() -> None:
    cache = Cache(Allowance(objects=2))
    cache.saw(obj("a"))
    cache.saw(obj("b"))
    cache.saw(obj("b", 2))
    with pytest.raises(Excessive, match="more objects of ours"):
        cache.saw(obj("c"))
    cache.drop("n", "a", "u", "9")
    assert cache.saw(obj("c", 10))
    assert cache.keep({("n", "b")}) == [("n", "c")]
    assert cache.saw(obj("d"))


def test_revisions_that_are_no_numbers() -> None:
    cache = Cache()
    assert cache.saw({"metadata": {"name": "a", "uid": "u", "resourceVersion": "\u00b2"}})
    assert cache.saw({"metadata": {"name": "a", "uid": "u", "resourceVersion": "\u00b3"}})

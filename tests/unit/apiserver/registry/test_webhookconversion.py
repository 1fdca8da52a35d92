"""What is remembered of conversions."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from apiserver.registry import webhookconversion
from apiserver.registry.webhookconversion import Memo


def test_the_oldest_go_when_there_is_too_much() -> None:
    memo = Memo(most=40)
    for number in range(4):
        memo.put(b"%d" % number, {"name": f"object {number}"})
    assert [memo.get(b"%d" % number) for number in range(4)] == [
        None, None, {"name": "object 2"}, {"name": "object 3"},
    ]  # fmt: skip
    memo.put(b"3", {"name": "object 3, longer"})
    assert memo.get(b"2") is None
    assert memo.get(b"3") == {"name": "object 3, longer"}
    memo.put(b"4", {"name": "one that is larger than everything together"})
    assert memo.get(b"4") is None


def test_what_is_given_is_the_callers() -> None:
    memo = Memo()
    memo.put(b"a", {"spec": {}})
    found = memo.get(b"a")
    assert found is not None
    found["spec"]["x"] = 1
    assert memo.get(b"a") == {"spec": {}}


def test_nothing_is_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    memo = Memo()
    memo.put(b"a", {})
    monkeypatch.setattr(webhookconversion, "time", SimpleNamespace(monotonic=lambda: now + 120))
    assert memo.get(b"a") is None

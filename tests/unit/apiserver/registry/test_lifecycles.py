"""What follows from whose turn is still to come in a workspace."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from apiserver.model import conditions
from apiserver.registry.lifecycles import INITIALIZER, LIFECYCLES, PHASE, TERMINATOR, type_of, with_labels, without

Object = dict[str, Any]
AT, LATER = "2026-01-01T00:00:00Z", "2026-05-05T00:00:00Z"


def waiting(*initializers: str, phase: str = "Initializing", **more: Any) -> Object:
    told = {"type": "WorkspaceInitialized", "status": "False", "lastTransitionTime": AT, "reason": "InitializerExists"}
    status = {"phase": phase, "initializers": [*initializers], "conditions": [told], **more}
    return {"metadata": {"name": "cluster", "labels": {"team": "a"}}, "spec": {}, "status": status}


@pytest.mark.parametrize("lifecycle", LIFECYCLES, ids=lambda each: each.word)
def test_a_labels_key_is_as_long_as_keys_may_be_and_its_value_is_the_hash(lifecycle: Any) -> None:
    key, value = lifecycle.label("abc:gold")
    assert len(key) == 63
    assert value == hashlib.sha224(b"abc:gold").hexdigest()
    assert key.partition("/")[0] == f"{lifecycle.word}.internal.kcp.io"
    assert value.startswith(key.partition("/")[2])


def test_one_of_two_takes_its_name_away_and_then_the_other() -> None:
    obj = waiting("a:one", "b:two", terminators=["a:one"])
    obj["metadata"]["labels"] = with_labels({"team": "a", "initializer.internal.kcp.io/old": "x"}, obj["status"])
    both = dict(map(INITIALIZER.label, ("a:one", "b:two"))) | dict([TERMINATOR.label("a:one")])
    assert obj["metadata"]["labels"] == {"team": "a", PHASE: "Initializing", **both}
    obj = without(obj, INITIALIZER, "a:one", LATER)
    assert (obj["status"]["initializers"], obj["status"]["phase"]) == (["b:two"], "Initializing")
    assert INITIALIZER.label("a:one")[0] not in obj["metadata"]["labels"]
    assert INITIALIZER.awaits(obj, "b:two") and not INITIALIZER.awaits(obj, "a:one")
    obj = without(obj, INITIALIZER, "b:two", LATER)
    assert (obj["status"]["initializers"], obj["status"]["phase"]) == ([], "Ready")
    found = conditions.get(obj["status"]["conditions"], "WorkspaceInitialized")
    assert found is not None
    assert (found["status"], found["lastTransitionTime"]) == ("True", LATER)
    assert obj["metadata"]["labels"] == {"team": "a", PHASE: "Ready", **dict([TERMINATOR.label("a:one")])}


@pytest.mark.parametrize("phase", ["Ready", "Unavailable", "Deleting", "Terminating"])
def test_no_phase_goes_back_to_ready_by_it(phase: str) -> None:
    obj = without(waiting("a:one", phase=phase), INITIALIZER, "a:one", LATER)
    assert obj["status"]["phase"] == phase
    assert not INITIALIZER.awaits(waiting("a:one", phase=phase), "a:one")


def test_a_programs_name_is_that_of_a_type() -> None:
    assert type_of("1abc:gold") == ("1abc", "gold")
    assert type_of("root:a:gold") == ("root:a", "gold")
    assert type_of("gold") == ("", "gold")

"""Which Ready of a sync target is believed: that of what was written, and no older one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.model import marks
from reconciler.commands.targeting import awaiting
from reconciler.commands.targeting.awaiting import NOT_SERVED, ServedAs, WrittenTarget, until_ready
from reconciler.commands.targeting.seen import TargetSeen

SPEC = {"connection": {"kubeconfigSecretRef": {"namespace": "default", "name": "tokyo"}}}
EXPORTS = {"supportedAPIExports": [{"path": "root:compute", "export": "kubernetes"}]}
VALUE = {"metadata": {"name": "tokyo", "labels": {"region": "ap"}}, "spec": SPEC}
ENDS = "2030-01-01T00:00:00Z"


def served(
    commit: str = "c2",
    uid: str = "u2",
    *,
    spec: Any = None,
    labels: Any = None,
    ready: str = "True",
    generation: int = 1,
    observed: int | None = 1,
    ends: str = ENDS,
) -> TargetSeen:
    metadata = {"name": "tokyo", "uid": uid, "generation": generation, "annotations": {marks.SOURCE_COMMIT: commit}}
    metadata["labels"] = {marks.TARGET_KEY: "k", **({"region": "ap"} if labels is None else labels)}
    told = [{"type": "Ready", "status": ready, "message": "" if ready == "True" else "no route"}]
    told.append({"type": "CredentialsValid", "status": "True", "message": f"the token ends at {ends}; it is renewed"})
    status = {"conditions": told, **({"observedGeneration": observed} if observed is not None else {})}
    made = {"unschedulable": False, **(SPEC if spec is None else spec)}
    return TargetSeen("root:infra", {"metadata": metadata, "spec": made, "status": status})


OLD = served("c1", "u1")
WRITTEN = WrittenTarget(VALUE, ENDS, "c2", ServedAs("u1", "c1"))


def test_what_was_written_is_ready() -> None:
    assert WRITTEN.lacks(served()) == ""


def test_the_same_that_came_to_the_branch_as_another_commit_is_ready() -> None:
    assert WRITTEN.lacks(served("c9")) == ""


@pytest.mark.parametrize(
    "seen",
    [None, OLD, served("c0", spec={**SPEC, **EXPORTS, "connection": {}}), served("c0", labels={"region": "eu"})],
    ids=["nothing", "what was there", "another spec", "other labels"],
)
def test_another_of_the_name_is_not_what_was_written(seen: TargetSeen | None) -> None:
    assert WRITTEN.lacks(seen) == NOT_SERVED


def test_a_file_that_says_what_it_said_is_served_already() -> None:
    assert WrittenTarget(VALUE, ENDS, "", ServedAs.of(OLD)).lacks(OLD) == ""


@pytest.mark.parametrize("observed", [None, 1])
def test_a_condition_of_an_older_generation_does_not_count(observed: int | None) -> None:
    assert "not asked yet as it is now" in WRITTEN.lacks(served(generation=2, observed=observed))
    assert WRITTEN.lacks(served(generation=2, observed=2)) == ""


def test_a_condition_told_with_other_credentials_does_not_count() -> None:
    assert ENDS in WRITTEN.lacks(served(ends="2029-01-01T00:00:00Z"))
    assert WrittenTarget(VALUE, "", "c2").lacks(served(ends="2029-01-01T00:00:00Z")) == "", "nobody knows its end"


def test_one_that_is_not_ready_says_why() -> None:
    assert WRITTEN.lacks(served(ready="False")) == "no route"


def test_it_is_looked_at_until_nothing_is_lacking_or_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awaiting, "_LOOK", 0.001)
    found: Iterator[TargetSeen | None] = iter([None, OLD, served(observed=None), served()])
    assert until_ready(lambda: next(found), WRITTEN, 60) == ""
    assert until_ready(lambda: OLD, WRITTEN, 0) == NOT_SERVED

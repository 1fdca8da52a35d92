"""A server that is killed between two transactions, and a branch that goes elsewhere before it is back."""

from __future__ import annotations

import pytest
from support.happenings import PUSHES, Happening
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_same

from apiserver.model import commits

NEW = "workspaces/root/new"


@pytest.mark.parametrize("beside", [True, False], ids=["another commit", "what was served"])
@pytest.mark.parametrize("writes", range(1, 8))
def test_what_half_a_commit_brought_goes_with_a_branch_that_left_it(
    empty: LoadedFleet, writes: int, beside: bool
) -> None:
    happening = Happening(empty)
    happening.begin()
    served, before = empty.repo.head, empty.everything()

    half = {f"{NEW}/workspace.yaml": "", f"{NEW}/app.yaml": configmap(), "workspaces/root/half.yaml": configmap("half")}
    happening.push(half)
    happening.die(writes)
    empty.repo.reset(served)
    if beside:
        empty.repo.commit({"workspaces/root/a/other.yaml": configmap("other")})
    empty.load()

    after = empty.everything()
    new = {key.name for key in after.keys() - before.keys()}
    assert before.keys() <= after.keys()
    assert ("other" in new) == beside
    assert "half" not in new
    # What had arrived of the new workspace stays until somebody allows that it goes, as if it had arrived whole.
    assert ("root:new" in empty.held()) == ("root:new" in empty.paths()) == ("app" in new)
    assert empty.fleet().arriving == ()


@pytest.mark.parametrize("writes", range(1, 8))
@pytest.mark.parametrize(
    "push", ["provide", "provide beside", "type", "type no more", "withdraw", "take each other's", "of the type"]
)
def test_a_load_that_is_cut_off_ends_as_one_that_is_not(
    empty: LoadedFleet, another: Another, push: str, writes: int
) -> None:
    cut_off = Happening(empty)
    cut_off.begin()
    whole = another(empty, "whole", keys=empty.keys)
    whole.load()
    for number in (4, 2):
        cut_off.push(PUSHES[push](number) | {f"workspaces/root/{w}/n.yaml": configmap(n=str(number)) for w in "ab"})
        whole.load()
        cut_off.die(writes)
        cut_off.load()
    assert_same(empty, whole)
    assert empty.fleet().arriving == ()


def test_what_arrived_before_a_crash_is_not_judged_again(empty: LoadedFleet) -> None:
    """Two commits are on their way, and one workspace has the second already."""
    happening = Happening(empty)
    happening.begin()
    files = {f"workspaces/root/{name}/x.yaml": configmap("x") for name in "ab"}
    happening.push(files | {"workspaces/root/x.yaml": configmap("x")})
    happening.die(3)  # the fleet's record, and two of three workspaces
    arrived = [r.path for r in empty.records() if r.head == commits.own(empty.repo.head)]
    assert len(arrived) == 2
    [step] = empty.load().steps
    assert step.judged == 1

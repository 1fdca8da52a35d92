"""A server that is killed between two transactions, and a branch that goes elsewhere before it is back."""

from __future__ import annotations

import pytest
from support.happenings import Happening
from support.loadedfleet import LoadedFleet, configmap

from apiserver.model.commits import NONE

NEW = "workspaces/root/new"


@pytest.mark.parametrize("writes", range(1, 8))
def test_what_half_a_commit_brought_goes_with_a_branch_that_left_it(empty: LoadedFleet, writes: int) -> None:
    happening = Happening(empty)
    happening.begin()
    served, before = empty.repo.head, empty.everything()

    half = {f"{NEW}/workspace.yaml": "", f"{NEW}/app.yaml": configmap(), "workspaces/root/half.yaml": configmap("half")}
    happening.push(half)
    happening.die(writes)
    empty.repo.reset(served)
    empty.repo.commit({"workspaces/root/a/other.yaml": configmap("other")})
    empty.load()

    after = empty.everything()
    new = {key.name for key in after.keys() - before.keys()}
    assert before.keys() <= after.keys()
    assert "other" in new
    assert "half" not in new
    # What had arrived of the new workspace stays until somebody allows that it goes, as if it had arrived whole.
    assert ("root:new" in empty.held()) == ("root:new" in empty.paths()) == ("app" in new)
    assert empty.fleet().arriving == NONE

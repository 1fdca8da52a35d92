"""A DELETE through the API is its user's word for that object, also for whoever loads the commit again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pygit2
import pytest
from support.commitfleet import CommitFleet, a_configmap
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_same

from apiserver.model.errors import StatusError
from reconciler.controllers.disposal import delete_all
from reconciler.loading.heads import HOLD, BranchSettings
from reconciler.plan.deletions import ALLOW, PROTECTED, Line, digest
from reconciler.repository.trailers import said
from reconciler.repository.write import edit_tree

PROTECTED_MAP = configmap("kept").replace("{name:", f"{{annotations: {{{PROTECTED}: 'true'}}, name:")
MANY = {f"{A}/many/{n:02}.yaml": configmap(f"m{n:02}") for n in range(12)}


def test_what_is_protected_goes_by_its_own_word(fleet: CommitFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.commit({f"{A}/kept.yaml": PROTECTED_MAP})
    fleet.publish()
    before = fleet.repo.head
    fleet.remove("root:a", "configmaps", "kept")
    assert fleet.held() == {}
    assert fleet.find("root:a", "configmaps", "kept") is None
    words = said(fleet.mirror.repository, fleet.repo.head, before, ALLOW)
    assert words == {digest([Line("root:a", "configmaps", "default", "kept")])}
    # A server that knows what was before follows the commit as it follows a push.
    new = another(fleet)
    new.load(new.recorded())
    assert new.held() == {}
    assert_same(new, fleet)


def test_a_crash_between_commit_and_store_does_not_hold_it(idle: CommitFleet) -> None:
    """The commit is the branch's; the store hears of it as of anybody's."""
    idle.commit({f"{A}/kept.yaml": PROTECTED_MAP})
    take = idle.committer._loader.propose

    def propose(*given: Any) -> Any:
        proposal = take(*given)
        return type(proposal)(proposal.held, proposal.faults, lambda: None)

    idle.committer._loader.propose = propose  # type: ignore[method-assign]
    idle.serve()
    with pytest.raises(StatusError):
        idle.remove("root:a", "configmaps", "kept")
    idle.committer = idle.new_committer()
    idle.load()
    assert idle.held() == {}
    assert idle.find("root:a", "configmaps", "kept") is None


def test_many_in_one_commit_are_allowed_together(
    idle: CommitFleet, another: Callable[..., LoadedFleet], eventually: Callable[..., Any]
) -> None:
    idle.commit(MANY)
    idle.publish()
    kind = idle.at("root:a", "configmaps").kind
    records = [r for n in range(12) if (r := idle.store.get(idle.key("root:a", "configmaps", f"m{n:02}")))]
    delete_all(idle.store, kind, records)
    idle.serve()
    eventually(lambda: idle.find("root:a", "configmaps", "m11") is None)
    assert idle.held() == {}
    assert idle.log()[-1] == "treeplane: Write 12 objects in root:a"
    new = another(idle)
    new.load(new.recorded())
    assert_same(new, idle)


def test_no_authors_name_excuses(fleet: CommitFleet) -> None:
    """The same deletion, pushed by somebody who signs as we do."""
    fleet.commit({f"{A}/kept.yaml": PROTECTED_MAP})
    fleet.remove("root:a", "configmaps", "app")
    ours = fleet.mirror.repository.commit(fleet.repo.head)
    repo = fleet.repo
    content = edit_tree(repo.repo, ours.tree, {f"{A}/kept.yaml": None})
    signed = pygit2.Signature("treeplane", "treeplane@localhost")
    made = repo.repo.git.create_commit(None, signed, signed, ours.message, content, [ours.id])
    repo.reset(str(made))
    fleet.load()
    assert "is protected" in fleet.held()["root:a"][0]


def test_what_stays_though_its_directory_went_takes_no_writes(fleet: CommitFleet) -> None:
    fleet.commit({A: None})
    head = fleet.repo.head
    with pytest.raises(StatusError) as raised:
        fleet.create("root:a", "configmaps", a_configmap())
    assert raised.value.code == 503
    assert "Allow-Delete" in raised.value.message
    assert fleet.repo.head == head


def test_writes_wait_for_a_branch_that_went_back(idle: CommitFleet) -> None:
    before = idle.repo.head
    idle.commit({f"{B}/more.yaml": configmap("more")})
    served = idle.repo.head
    idle.loader = idle.committer._loader = idle.new_loader(BranchSettings(rewrites=HOLD))
    idle.repo.reset(before)
    assert idle.load().problems
    idle.serve()
    with pytest.raises(StatusError) as raised:
        idle.create("root:a", "configmaps", a_configmap())
    assert raised.value.code == 503
    assert f"went back to {before}" in raised.value.message
    assert idle.repo.head == before
    assert idle.data("root:b", "more") == {"a": "b"}
    idle.repo.reset(served)
    idle.load()
    idle.create("root:a", "configmaps", a_configmap())
    assert idle.data("root:a", "made") == {"a": "b"}

"""Which of several servers on one repository writes, who observes, and how one takes over."""

from __future__ import annotations

from pathlib import Path

from support.loadedfleet import A, configmap
from support.serverworlds import BRANCH, World
from support.shipped import WORKLOAD, binding
from support.statusfiles import elsewhere, source_files

from reconciler.repository.objects import Repository
from reconciler.repository.write import move_ref
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import Verifier


def test_of_two_that_start_together_one_observes(world: World) -> None:
    first, second, _ = world.servers
    first.cut = True
    first.start()
    assert not first.alive, "it never saw the branch"
    first.cut = False
    first.start()
    second.start()
    assert (first.holds, second.holder) == (True, first.installation.writer)


def test_one_that_was_cut_off_gives_way_to_who_took_over(world: World) -> None:
    first, second, _ = world.servers
    world.cut_off("before")
    second.start(first.installation.writer)
    assert second.holds
    assert second.said() == {"before"}
    second.record("after")
    first.mirror.cut = False
    first.tick()
    assert first.holder == second.installation.writer
    assert first.said() == {"before", "after"}
    [kept] = [name for name in first.mirror.repository.references if name.startswith("refs/treeplane/keep/")]
    assert "alone" in str(first.mirror.repository.raw(_residue(first.mirror.repository, kept), 3))


def _residue(repo: Repository, ref: str) -> str:
    entry = repo.entry_at(repo.commit(repo.ref(ref) or "").tree, f"{A}/_status/default/configmaps/app.yaml")
    assert entry is not None
    return entry.id


def test_a_flag_that_names_another_does_nothing(world: World) -> None:
    first, second, _ = world.servers
    first.start()
    second.start("somebody/1")
    assert second.holder == first.installation.writer
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    own_key, made = CommitKey.open(second.settings.keys_dir), second.mirror.status()
    assert made is not None
    assert Verifier(own_key).signer(second.mirror.repository, made, Signers()).ours, "what takes over is signed"
    first.tick()
    assert first.holder == second.installation.writer
    taken = second.settings.take_over
    second.stop()
    first.stop()
    first.start(second.installation.writer)
    assert first.holds
    second.start(taken)
    assert second.holder == first.installation.writer, "left in a unit file, it does nothing the second time"


def test_a_flag_that_names_another_leaves_a_start_on_this_machine_as_it_is(tmp_path: Path) -> None:
    world = World(tmp_path, remote=False, servers=2)
    try:
        first, second = world.servers
        first.start()
        second.start("somebody/1")
        assert second.holds
    finally:
        world.close()


def test_an_observer_does_not_inherit_a_branch_that_somebody_took_away(world: World) -> None:
    first, second, _ = world.servers
    first.start()
    first.record("theirs")
    second.start()
    second.stop()
    first.kill()
    move_ref(world.repo.repo, BRANCH, None, world.head)
    second.start()
    assert second.holder == first.installation.writer
    assert second.said() == {"theirs"}
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    assert world.published() == {"theirs"}


def test_what_was_recorded_in_a_load_is_shown_and_taken_over(world: World) -> None:
    """A decision that was made while a commit was on its way, of a workspace that was past what is named."""
    first, second, third = world.servers
    first.start()
    second.start()
    change = {f"{A}/app.yaml": configmap(a="changed"), "workspaces/root/new/workspace.yaml": ""}
    world.repo.commit({**change, "workspaces/root/new/app.yaml": configmap()})
    first.die_in_a_load("in between")
    second.tick()
    assert second.said() == {"in between"}
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    second.tick()
    assert world.published() == {"in between"}
    third.start()
    assert third.objects() == second.objects()
    files = source_files(second.mirror, second.mirror.status() or "")
    assert not [path for path, text in files.items() if "\nat: " in text or text.startswith("at: ")]
    assert "workspaces/root/new/_summary.yaml" in files
    assert "arriving" not in files["fleet.yaml"]


def test_a_branch_that_names_nobody_is_put_right(world: World) -> None:
    first = world.servers[0]
    first.start()
    first.record("mine")
    theirs = elsewhere(world.repo, {f"{A}/_status/default/configmaps/app.yaml": b"theirs\n"})
    first.tick()
    assert first.holds
    assert world.published() == {"mine"}
    assert Repository(world.repo.path).is_ancestor(theirs, world.head or "")


def test_real_clusters_are_taken_over_by_nobody_by_himself(tmp_path: Path) -> None:
    target = (
        "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: eu}\n"
        "spec: {connection: {kubeconfigSecretRef: {name: eu}}}\n"
    )
    world = World(tmp_path, remote=False, servers=2)
    try:
        world.repo.commit({f"{A}/apis.yaml": binding(WORKLOAD), f"{A}/target.yaml": target})
        first, second = world.servers
        first.start()
        second.start()
        assert second.holder == first.installation.writer
        world.repo.commit({f"{A}/target.yaml": None})
        first.tick()
        second.stop()
        second.start()
        assert second.holds
    finally:
        world.close()

"""Who may touch what: what is touched without a right is held, in the running server and after a recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.loadedfleet import configmap
from support.moving import HEAD
from support.ownedfleet import ADMIN, OWNERS_YAML, OwnedFleet, pushers
from support.recoveries import assert_same

from apiserver.auth.user import AUTHENTICATED, User
from apiserver.model import marks
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import FleetConfig
from reconciler.loading import whole
from reconciler.repository.objects import Repository
from reconciler.signatures.own import CommitKey

R = "workspaces/root"


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[OwnedFleet]:
    made = OwnedFleet(tmp_path / "fleet")
    made.begin()
    yield made
    made.close()


@pytest.fixture
def recovered(tmp_path: Path) -> Iterator[Callable[[OwnedFleet], OwnedFleet]]:
    made: list[OwnedFleet] = []

    def recover(fleet: OwnedFleet) -> OwnedFleet:
        made.append(OwnedFleet(tmp_path / f"recovered{len(made)}", fleet))
        made[-1].load(made[-1].recorded())
        return made[-1]

    yield recover
    for each in made:
        each.close()


def same(one: OwnedFleet, other: OwnedFleet) -> None:
    assert_same(one, other)
    assert one.fleet().error == other.fleet().error


@pytest.mark.parametrize(
    ("user", "file"),
    [
        ("alice", f"{R}/a/app.yaml"),
        ("carol", f"{R}/a/app.yaml"),
        ("carol", f"{R}/app.yaml"),
        (ADMIN, f"{R}/b/app.yaml"),
    ],
)
def test_whoever_has_the_right_there_or_above_may(owned: OwnedFleet, user: str, file: str) -> None:
    owned.push(user, {file: configmap(a="new")})
    path = "root:" + file.split("/")[2] if file.count("/") > 2 else "root"
    assert owned.held() == {}
    assert owned.data(path) == {"a": "new"}


def test_what_is_anothers_is_held_and_ones_own_goes_on(owned: OwnedFleet) -> None:
    owned.push("alice", {f"{R}/a/app.yaml": configmap(a="new"), f"{R}/b/app.yaml": configmap(a="stolen")})
    assert owned.data("root:a") == {"a": "new"}
    assert owned.data("root:b") == {"a": "b"}
    commit = owned.repo.head
    [error] = owned.held()["root:b"]
    assert error == (
        f"{R}/b/app.yaml: is touched by {commit:.10}, pushed by alice: nobody gave alice the verb `push` on "
        "/git/fleet.git in root:b or a workspace above (take it back, or have somebody who may push a commit that "
        f"says `Allow-Push: {commit}`)"
    )


def test_the_author_line_decides_nothing(owned: OwnedFleet) -> None:
    """Commits of these tests have Treeplane as author and committer."""
    owned.repo.commit({f"{R}/b/app.yaml": configmap(a="stolen")})
    owned.load()
    assert "of whom it is not known who pushed it, since it is not signed" in owned.held()["root:b"][0]


def test_who_has_a_right_in_a_workspace_may_not_make_another_of_it(owned: OwnedFleet) -> None:
    """workspace.yaml is the parent's."""
    owned.push("alice", {f"{R}/a/workspace.yaml": "metadata: {labels: {tier: gold}}\n"})
    assert "is touched" in owned.held()["root:a"][0]
    assert "tier" not in owned.workspace("root:a")["metadata"]["labels"]
    owned.push("alice", {f"{R}/a/kid/workspace.yaml": "", f"{R}/a/kid/app.yaml": configmap()})
    assert owned.held().keys() == {"root:a"}
    assert owned.data("root:a:kid") == {"a": "b"}


def test_a_workspace_that_may_not_be_made_shows_its_name_and_why(owned: OwnedFleet) -> None:
    owned.push(
        "alice", {f"{R}/new/workspace.yaml": "metadata: {labels: {tier: gold}}\n", f"{R}/new/app.yaml": configmap()}
    )
    assert owned.held().keys() == {"root:new"}
    assert not owned.record("root:new").served
    assert "tier" not in owned.workspace("root:new")["metadata"].get("labels", {})


@pytest.mark.parametrize("gone", [[f"{R}/b/workspace.yaml"], [f"{R}/b"]])
def test_a_workspace_that_may_not_be_removed_stays(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet], gone: list[str]
) -> None:
    owned.push("alice", dict.fromkeys(gone))
    assert owned.held().keys() == {"root:b"}
    assert owned.data("root:b") == {"a": "b"}
    owned.push("alice", {f"{R}/a/app.yaml": configmap(a="later")})
    assert owned.data("root:b") == {"a": "b"}
    owned.publish()
    same(recovered(owned), owned)


def test_a_removal_that_is_barred_is_not_allowed_by_whoever_did_it(owned: OwnedFleet) -> None:
    """Allow-Delete allows a loss, and gives nobody a right."""
    owned.push("alice", {f"{R}/b": None})
    owned.push(
        ADMIN, {f"{R}/b/workspace.yaml": "", f"{R}/b/app.yaml": configmap(), f"{R}/b/pushers.yaml": pushers("bob")}
    )
    assert owned.held() == {}
    owned.push("carol", {f"{R}/b": None})
    (hashed,) = {
        word for error in owned.held()["root:b"] for word in error.split() if word.strip("'") and len(word) == 41
    }
    owned.push(
        ADMIN, {f"{R}/b/workspace.yaml": "", f"{R}/b/app.yaml": configmap(), f"{R}/b/pushers.yaml": pushers("bob")}
    )
    owned.push("alice", {f"{R}/b": None}, f"Remove it\n\nAllow-Delete: {hashed.strip(chr(39))}\n")
    assert owned.held().keys() == {"root:b"}
    assert owned.data("root:b") == {"a": "b"}


def test_what_is_taken_back_is_held_no_more(owned: OwnedFleet) -> None:
    owned.push("alice", {f"{R}/b/app.yaml": configmap(a="stolen")})
    owned.push("dave", {f"{R}/b/app.yaml": configmap()})
    assert owned.held() == {}
    owned.push("bob", {f"{R}/b/app.yaml": configmap(a="mine")})
    assert owned.data("root:b") == {"a": "mine"}


def test_a_later_commit_of_the_owner_does_not_take_it_along_unless_it_says_so(owned: OwnedFleet) -> None:
    owned.push("alice", {f"{R}/b/more.yaml": configmap("more", a="stolen")})
    did = owned.repo.head
    owned.push("bob", {f"{R}/b/app.yaml": configmap(a="mine")})
    assert owned.held().keys() == {"root:b"}
    owned.push("alice", {}, f"Allow\n\nAllow-Push: {did}\n")
    assert owned.held().keys() == {"root:b"}
    owned.push("bob", {}, f"Allow\n\nAllow-Push: {did}\n")
    assert owned.held() == {}
    assert owned.data("root:b") == {"a": "mine"}
    assert owned.data("root:b", "more") == {"a": "stolen"}


def test_a_right_that_a_commit_gives_counts_from_the_next_one_on(owned: OwnedFleet) -> None:
    owned.push("alice", {f"{R}/b/pushers.yaml": pushers("alice", "bob"), f"{R}/b/app.yaml": configmap(a="stolen")})
    assert owned.data("root:b") == {"a": "b"}
    owned.push("dave", {f"{R}/b/pushers.yaml": pushers("bob"), f"{R}/b/app.yaml": configmap()})
    owned.push("bob", {f"{R}/b/pushers.yaml": pushers("alice", "bob")})
    owned.push("alice", {f"{R}/b/app.yaml": configmap(a="given")})
    assert owned.held() == {}
    assert owned.data("root:b") == {"a": "given"}


def test_a_right_that_only_the_api_knows_of_counts_for_nothing(owned: OwnedFleet) -> None:
    """It would be gone after a recovery."""
    binding = owned.get("root:b", "clusterrolebindings.rbac.authorization.k8s.io", "pushers", "")
    made = {**binding, "metadata": {**binding["metadata"], "name": "api"}}
    made["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    made["metadata"]["annotations"] = {marks.ORIGIN: marks.RUNTIME}
    key = owned.key("root:b", "clusterrolebindings.rbac.authorization.k8s.io", "api", "")
    owned.put(key, made)
    owned.push("alice", {f"{R}/b/app.yaml": configmap(a="stolen")})
    assert owned.held().keys() == {"root:b"}
    # The same object, as git would have it.
    owned.update(key, lambda obj: obj["metadata"].pop("annotations"))
    owned.push("bob", {f"{R}/b/app.yaml": configmap()})
    owned.push("alice", {f"{R}/b/app.yaml": configmap(a="given")})
    assert owned.data("root:b") == {"a": "given"}


@pytest.mark.parametrize(
    "file", ["treeplane.yaml", "signers/allowed_signers", "workspaces/.treeplaneignore", "README.md"]
)
def test_what_is_outside_of_workspaces_is_roots(owned: OwnedFleet, file: str) -> None:
    served = owned.fleet().commit
    text = OWNERS_YAML.replace("true", "false") if file == "treeplane.yaml" else "*\n"
    owned.push("alice", {file: text, f"{R}/a/app.yaml": configmap(a="new")})
    did = owned.repo.head
    assert owned.fleet().commit == served
    assert f"{file}: is touched by {did:.10}" in owned.fleet().error
    owned.push("bob", {f"{R}/b/app.yaml": configmap(a="mine")})
    assert owned.fleet().commit == served
    owned.push("alice", {}, f"Allow\n\nAllow-Push: {did}\n")
    assert owned.fleet().commit == served
    owned.push("carol", {file: owned.repo.files(served.id).get(file)}, f"Take it\n\nAllow-Push: {did}\n")
    assert owned.fleet().error == ""
    assert owned.data("root:b") == {"a": "mine"}


def test_a_branch_that_leaves_such_a_commit_goes_on(owned: OwnedFleet) -> None:
    served = owned.fleet().commit
    owned.push("alice", {"treeplane.yaml": OWNERS_YAML.replace("true", "false")})
    owned.repo.reset(served.id)
    owned.push("alice", {f"{R}/a/app.yaml": configmap(a="new")})
    assert owned.fleet().error == ""
    assert owned.data("root:a") == {"a": "new"}


def test_nobody_stands_for_a_branch_that_went_back(owned: OwnedFleet) -> None:
    """Whoever pushed a commit once did not take the branch back to it, nor put it on what was there by then."""
    owned.push("bob", {f"{R}/b/app.yaml": configmap(a="1")})
    back = owned.repo.head
    owned.push(ADMIN, {f"{R}/a/app.yaml": configmap(a="proposed")})
    proposal = owned.repo.head
    owned.repo.reset(back)
    owned.load()
    owned.push("bob", {f"{R}/b/app.yaml": configmap(a="2")}, f"Leave it\n\nAllow-Rewrite: {proposal}\n")
    served = owned.repo.head
    assert (owned.fleet().error, owned.data("root:b")) == ("", {"a": "2"})
    for elsewhere in (back, proposal):
        owned.repo.reset(elsewhere)
        owned.load()
        assert owned.fleet().commit.id == served
        assert f"{served:.10}" in owned.fleet().error
        assert owned.data("root:b") == {"a": "2"}
    # What says that it leaves what is served is of who pushed that, with all that it takes away.
    owned.push("alice", {f"{R}/a/app.yaml": configmap(a="new")}, f"Leave it\n\nAllow-Rewrite: {served}\n")
    assert owned.fleet().error == ""
    assert owned.held().keys() == {"root:a", "root:b"}
    assert (owned.data("root:a"), owned.data("root:b")) == ({"a": "proposed"}, {"a": "2"})


def test_a_workspace_that_requires_groups_is_pushed_to_by_who_is_of_them(owned: OwnedFleet) -> None:
    said = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata:\n  annotations:\n"
    owned.push(ADMIN, {f"{R}/a/workspace.yaml": f"{said}    authorization.kcp.io/required-groups: team\n"})
    assert owned.held() == {}
    owned.push("alice", {f"{R}/a/app.yaml": configmap(a="1")})
    assert owned.held().keys() == {"root:a"}
    owned.push("carol", {f"{R}/a/app.yaml": configmap()})
    owned.push(User("alice", (AUTHENTICATED, "team")), {f"{R}/a/app.yaml": configmap(a="2")})
    assert (owned.held(), owned.data("root:a")) == ({}, {"a": "2"})


def test_what_an_ignore_file_hides_is_its_owners(owned: OwnedFleet) -> None:
    owned.push("carol", {f"{R}/.treeplaneignore": "b/\n"}, "Hide")
    owned.push(ADMIN, {f"{R}/.treeplaneignore": None}, "Show")
    assert owned.held() == {}
    owned.push("alice", {f"{R}/a/.treeplaneignore": "app.yaml\n"})
    assert owned.data("root:a") is None
    owned.push("alice", {f"{R}/.treeplaneignore": "b/\n"})
    assert owned.held().keys() >= {"root:b"}
    assert owned.data("root:b") == {"a": "b"}


def test_a_workspace_cannot_be_moved_away_by_who_may_not(owned: OwnedFleet) -> None:
    uid = owned.workspace("root:b")["metadata"]["uid"]
    files = {f"{R}/b": None, f"{R}/a/b/workspace.yaml": f"metadata: {{uid: {uid}}}\n"}
    files |= {f"{R}/a/b/app.yaml": configmap(), f"{R}/a/b/pushers.yaml": pushers("bob")}
    owned.push("alice", files)
    assert "root:b" in owned.held()
    assert owned.data("root:b") == {"a": "b"}
    assert not owned.record("root:a:b").served
    cluster = owned.record("root:b").cluster
    owned.push("carol", {}, f"Allow\n\nAllow-Push: {owned.repo.head}\n")
    assert owned.record("root:b").cluster == cluster


def test_a_held_workspace_is_held_in_the_same_words_after_a_recovery(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]
) -> None:
    owned.push("alice", {f"{R}/b/app.yaml": configmap(a="stolen"), f"{R}/new/workspace.yaml": ""})
    owned.publish()
    again = recovered(owned)
    same(again, owned)
    for fleet in (owned, again):
        fleet.loader = fleet.new_loader()
    owned.push("bob", {}, f"Allow\n\nAllow-Push: {owned.repo.commits[-1]}\n")
    again.load()
    same(again, owned)
    assert again.data("root:b") == {"a": "stolen"}
    assert again.held().keys() == {"root:new"}


def test_a_repository_that_is_ones_own_work_tree_asks_nobody(tmp_path: Path) -> None:
    fleet = OwnedFleet(tmp_path / "fleet", local=True)
    fleet.begin()
    fleet.commit({f"{R}/b/app.yaml": configmap(a="new")})
    assert fleet.held() == {}
    fleet.close()


def test_where_nobody_can_be_known_that_is_told_at_once(tmp_path: Path) -> None:
    fleet = OwnedFleet(tmp_path / "fleet")
    fleet.begin()
    assert "no signer is named: all that commits touch from now on is held" in fleet.loader.entrance.knows_nobody()
    signers = tmp_path / "fleet" / "signers"
    signers.mkdir()
    (signers / "allowed_signers").write_text(f"alice {CommitKey(Ed25519PrivateKey.generate()).public}\n")
    assert fleet.loader.entrance.knows_nobody() == ""
    fleet.push(ADMIN, {"treeplane.yaml": OWNERS_YAML.replace("true", "false")})
    assert fleet.loader.entrance.knows_nobody() == ""
    fleet.close()


def test_a_pin_does_not_make_good_what_was_touched_without_a_right(
    owned: OwnedFleet, recovered: Callable[[OwnedFleet], OwnedFleet]
) -> None:
    served = owned.repo.head
    pin = f"{HEAD}spec: {{serve: {{commit: {served}}}}}\n"
    owned.push("alice", {f"{R}/b/app.yaml": configmap(a="stolen")})
    did = owned.repo.head
    owned.push("bob", {f"{R}/b/workspace.yaml": pin})  # which is the parent's to say
    assert owned.held().keys() == {"root:b"}
    owned.push("carol", {f"{R}/b/workspace.yaml": ""})
    owned.push("carol", {f"{R}/b/workspace.yaml": pin}, f"Pin it\n\nAllow-Push: {owned.repo.commits[-2]}\n")
    assert owned.held() == {}
    owned.push("alice", {f"{R}/b/more.yaml": configmap("more")})
    assert owned.held() == {}
    owned.publish()
    again = recovered(owned)
    same(again, owned)
    owned.push("carol", {f"{R}/b/workspace.yaml": ""})
    again.load()
    for fleet in (owned, again):
        assert fleet.held().keys() == {"root:b"}
        assert (fleet.data("root:b"), fleet.data("root:b", "more")) == ({"a": "b"}, None)
    same(again, owned)
    more = owned.repo.commits[-2]
    owned.push("bob", {}, f"Allow\n\nAllow-Push: {did} {more}\n")
    assert (owned.held(), owned.data("root:b")) == ({}, {"a": "stolen"})


def test_a_served_fleet_that_cannot_be_read_any_more_takes_nothing(
    owned: OwnedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a change of version: what it says of owners is not known then."""
    served = owned.fleet().commit.id

    def cannot(repo: Repository, tree: str) -> FleetConfig:
        raise BadFile([LayoutError("treeplane.yaml", 3, 0, "spec.later is no field")])

    owned.repo.commit({f"{R}/b/app.yaml": configmap(a="stolen")})
    with monkeypatch.context() as patched:
        patched.setattr(whole, "read_fleet", cannot)
        owned.loader = owned.new_loader()
        owned.load()
        assert owned.fleet().commit.id == served
        assert "treeplane.yaml:3: cannot be read as it is served, and so it is not known who may push" in (
            owned.fleet().error
        )
    owned.loader = owned.new_loader()
    owned.load()
    assert owned.held().keys() == {"root:b"}

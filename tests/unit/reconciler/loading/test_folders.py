"""A fleet in a folder: what is beside it is nothing to it, and a folder that is gone takes nothing away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.loadedfleet import BEGINNING, A, LoadedFleet, configmap
from support.ownedfleet import MadeUpPushes
from support.signing import Person, needs_ssh

from apiserver.model.errors import StatusError
from reconciler.layout.draft import Draft
from reconciler.layout.reach import reach
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loader
from reconciler.loading.sealedsecrets import creation_for
from reconciler.loading.vouching import Vouching
from reconciler.repository.objects import Repository
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier

FOLDER = "fleets/prod"
Make = Callable[..., LoadedFleet]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    with ExitStack() as opened:

        def made(name: str = "one", repo: FleetRepo | None = None, folder: str = FOLDER) -> LoadedFleet:
            repo = repo or FleetRepo(tmp_path / f"{name}.git", folder=folder)
            return opened.enter_context(closing(LoadedFleet(tmp_path / name, repo, keys=tmp_path / "keys")))

        yield made


def test_a_commit_elsewhere_is_served_at_once_and_writes_nothing(make: Make) -> None:
    fleet = make()
    fleet.begin()
    fleet.publish()
    made = fleet.repo.elsewhere({"services/main.go": "package main\n", ".treeplaneignore": "*\n"})
    loaded = fleet.load()
    assert fleet.fleet().commit.id == made
    assert fleet.written() == []
    assert [step.judged for step in loaded.steps] == [0]
    assert fleet.writer().flush() is None  # nothing is recorded of it either


def test_paths_are_those_of_the_repository(make: Make) -> None:
    fleet = make()
    fleet.begin({f"{A}/bad.yaml": "kind: ConfigMap\n"})
    errors = fleet.held()["root:a"]
    assert [error for error in errors if not error.startswith(f"{FOLDER}/{A}/bad.yaml:1")] == []
    app = fleet.get("root:b", "configmaps", "app")
    assert app["metadata"]["annotations"]["treeplane.dev/source-path"] == f"{FOLDER}/workspaces/root/b/app.yaml"


@pytest.mark.parametrize("becomes", ["missing", "a symbolic link", "a submodule", "a file"])
def test_a_folder_that_is_gone_holds_the_fleet_and_deletes_nothing(make: Make, becomes: str) -> None:
    fleet = make()
    fleet.begin()
    served, before = fleet.fleet().commit, fleet.paths()
    files = {f"{FOLDER}/{path}": None for path in fleet.first_files()}
    fleet.repo.elsewhere({**files, "services/main.go": "x"})
    if becomes != "missing":
        link = fleet.repo.link("../other") if becomes == "a symbolic link" else "x"
        if becomes == "a submodule":
            link = type(fleet.repo.link("x"))(served.id, b"160000")
        fleet.repo.elsewhere({FOLDER: link})
    fleet.load()
    assert f"{FOLDER}: is {becomes}" in fleet.fleet().error
    assert "nothing is deleted for that" in fleet.fleet().error
    assert "treeplane.yaml" not in fleet.fleet().error  # one mistake, one error
    assert fleet.fleet().commit == served
    assert fleet.paths() == before
    fleet.repo.elsewhere({FOLDER: None})
    fleet.commit(dict(fleet.repo.files(served.id)))
    assert fleet.fleet().error == ""
    assert fleet.written() == []


def test_a_folder_that_moves_is_the_same_fleet(make: Make) -> None:
    fleet = make()
    fleet.begin()
    fleet.publish()
    uid = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    clusters = {record.path: record.cluster for record in fleet.records()}
    files = fleet.first_files()
    gone = {f"{FOLDER}/{path}": None for path in files}
    fleet.repo.elsewhere({**gone, **{f"live/eu/{path}": text for path, text in files.items()}})
    fleet.load()
    assert f"{FOLDER}: is missing" in fleet.fleet().error
    fleet.repo.folder = "live/eu"
    fleet.mirror.repository.folders = ("live/eu", FOLDER)
    fleet.loader = fleet.new_loader()
    fleet.load()
    assert fleet.fleet().error == ""
    assert fleet.held() == {}
    assert {record.path: record.cluster for record in fleet.records()} == clusters
    app = fleet.get("root:a", "configmaps", "app")
    assert app["metadata"]["uid"] == uid
    assert app["metadata"]["annotations"]["treeplane.dev/source-path"] == f"live/eu/{A}/app.yaml"
    fleet.publish()
    recorded = fleet.recorded()
    assert recorded is not None
    assert recorded.facts().folders == ("live/eu", FOLDER)
    new = make("two", fleet.repo)
    new.mirror.repository.folders = recorded.facts().folders
    new.load(recorded)
    assert new.get("root:a", "configmaps", "app")["metadata"]["uid"] == uid


def test_two_fleets_of_one_repository_are_two(make: Make) -> None:
    one = make()
    one.begin()
    two = make("two", FleetRepo(one.repo.path, folder="fleets/dev"))
    two.begin()
    assert one.fleet().fleet != two.fleet().fleet
    uids = {fleet.get("root:a", "configmaps", "app")["metadata"]["uid"] for fleet in (one, two)}
    assert len(uids) == 2


def test_what_is_outside_is_nobodys_to_ask_about(make: Make) -> None:
    fleet = make()
    fleet.begin()
    repo, before = fleet.mirror.repository, fleet.repo.head
    noise = fleet.repo.elsewhere({"workspaces/root/a/app.yaml": "x", "treeplane.yaml": TREEPLANE_YAML, "README": ""})
    trees = [repo.commit(each).tree for each in (before, noise)]
    assert reach(repo, trees[0], trees[1]) == []
    touched = fleet.repo.commit({f"{A}/app.yaml": configmap(b="c"), "treeplane.yaml": TREEPLANE_YAML + "# x\n"})
    places = reach(repo, trees[1], repo.commit(touched).tree)
    assert [(each.path, each.file) for each in places] == [
        ("", f"{FOLDER}/treeplane.yaml"), ("root:a", f"{FOLDER}/{A}/app.yaml")
    ]  # fmt: skip


def test_what_is_ignored_above_the_folder_says_nothing_below_it(make: Make) -> None:
    fleet = make()
    fleet.repo.elsewhere({".treeplaneignore": "*.yaml\n", "fleets/.treeplaneignore": "workspaces/\n"})
    fleet.begin()
    assert "root:a" in fleet.paths()
    tree = WorkspaceTree(Repository(fleet.repo.path, (FOLDER,)), fleet.repo.repo.commit(fleet.repo.head).tree)
    assert tree.fault() is None


def test_rules_of_encryption_above_the_folder_are_nobodys_to_follow(make: Make) -> None:
    """They name who can read what this server writes; whoever may write there is not asked who he is."""
    fleet = make()
    fleet.begin()
    fleet.repo.elsewhere({".sops.yaml": "a: [", "fleets/.sops.yaml": "a: ["})
    repo, file = fleet.mirror.repository, f"{FOLDER}/{A}/new.yaml"
    assert creation_for(Draft(repo, repo.commit(fleet.repo.head).tree), file) is None
    fleet.repo.commit({".sops.yaml": "a: ["})
    with pytest.raises(StatusError, match=f"{FOLDER}/.sops.yaml cannot be read"):
        creation_for(Draft(repo, repo.commit(fleet.repo.head).tree), file)


class SignedFolder(LoadedFleet):
    """One whose commits have to be signed."""

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        vouching = Vouching(MadeUpPushes(), Verifier(CommitKey(Ed25519PrivateKey.generate())), self.keys / "signers")
        return super().new_loader(branch or BranchSettings(vouching=vouching))


@needs_ssh
@pytest.mark.parametrize("mode", ["Head", "Every"])
def test_others_commits_need_no_signature_unless_they_allow_something(tmp_path: Path, mode: str) -> None:
    alice, repo = Person("alice"), FleetRepo(tmp_path / "signed.git", folder=FOLDER)
    said = {"treeplane.yaml": f"{TREEPLANE_YAML}spec: {{verification: {{mode: {mode}}}}}\n"}
    with closing(SignedFolder(tmp_path / "signed", repo)) as fleet:
        signers = fleet.keys / "signers"
        signers.mkdir(parents=True)
        (signers / "allowed_signers").write_text(alice.line())
        first = repo.commit({**BEGINNING, **said, "signers/allowed_signers": alice.line()}, sign=alice.sign)
        fleet.load()
        assert fleet.fleet().commit.id == first

        def data() -> object:
            return fleet.get("root:a", "configmaps", "app")["data"]

        repo.commit({f"{A}/app.yaml": configmap(b="alice's")}, sign=alice.sign)
        others = repo.elsewhere({"services/main.go": "package main\n"})
        fleet.load()
        assert fleet.fleet().commit.id == others
        assert data() == {"b": "alice's"}

        for allowing in ("Allow-Delete: ", "allow-push: "):
            repo.elsewhere({"services/main.go": allowing}, f"Nothing to see\n\n{allowing}{'0' * 40}\n")
            fleet.load()
            assert fleet.fleet().commit.id == others
            repo.reset(others)
        side = repo.elsewhere({"services/x": "y"}, f"Aside\n\nAllow-Delete: {'0' * 40}\n")
        repo.reset(others)
        repo.elsewhere({"services/y": "z"})
        fleet.load()
        before = fleet.fleet().commit.id
        with_folder, repo.folder = repo.folder, ""
        repo.merge({"services/x": "y"}, side)
        repo.folder = with_folder
        fleet.load()
        assert fleet.fleet().commit.id == before  # what is merged allows as well
        repo.reset(before)

        repo.commit({f"{A}/app.yaml": configmap(b="mallory's")})
        repo.elsewhere({"services/main.go": "package other\n"})
        fleet.load()
        assert data() == {"b": "alice's"}

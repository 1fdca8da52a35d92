"""A fleet whose head names another status branch goes on from the one in use, with the data directory lost."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.loadedfleet import BEGINNING, A, LoadedFleet, configmap

from reconciler.commands.installation import Installation
from reconciler.commands.lookout import Lookout
from reconciler.commands.report import Report
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.source import resolve
from reconciler.commands.start import Beginning, Start, StartRefused
from reconciler.commands.teller import Teller
from reconciler.commands.validate import validate_revision
from reconciler.layout.fleet import STATUS_BRANCH, STATUS_PLACE
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch.naming import places

TREEPLANE = "treeplane.yaml"


def naming(name: str) -> str:
    return TREEPLANE_YAML + f"spec: {{statusBranch: {name}}}\n"


def git(*arguments: str | Path) -> str:
    command = ["git", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def serve(directory: Path, files: dict[str, str] | None = None, name: str = STATUS_BRANCH) -> LoadedFleet:
    """A fleet that was served, and recorded on the branch of that name."""
    fleet = LoadedFleet(directory)
    fleet.mirror.status_branch = name
    fleet.begin(files)
    fleet.publish()
    fleet.close()
    return fleet


def mirror_of(source: Path | str, data: Path) -> Mirror:
    data.mkdir(exist_ok=True)
    return Mirror(data, str(source), "main", STATUS_BRANCH)


def begin(source: Path | str, data: Path) -> Beginning:
    """As a server with an empty data directory."""
    mirror, teller = mirror_of(source, data), Teller(Report())
    settings = ReconcileSettings(data, data, source=str(source), url="u", local_url="u", command=("treeplane", "up"))
    heads = Lookout(mirror, teller).first()
    assert heads is not None
    start = Start(settings, mirror, Installation(data), teller, first=True)
    beginning = start.begin(heads)
    start.begins_anew(beginning)
    return beginning


def forge(repo: FleetRepo, name: str, served: str, like: str = STATUS_BRANCH) -> str:
    """A branch that looks like a status branch, about a commit of the pusher's choosing."""
    tree = Repository(repo.path).commit(str(repo.repo.ref(f"refs/heads/{like}"))).tree
    message = f"Record\n\nSource-Commit: {served}\nWriter: 0123/1\nEpoch: 7\n"
    return commit_tree(repo.repo, tree, [served], message, 1_800_000_000, f"refs/heads/{name}", None)


Where = Callable[[Path], Path | str]
SOURCES: dict[str, Where] = {"here": lambda path: path, "a URL": lambda path: f"file://{path}"}
everywhere = pytest.mark.parametrize("where", SOURCES.values(), ids=SOURCES)


@everywhere
@pytest.mark.parametrize(("used", "named"), [(STATUS_BRANCH, "elsewhere"), ("observed", STATUS_BRANCH)])
def test_the_branch_in_use_is_found_whatever_the_head_names(
    tmp_path: Path, where: Where, used: str, named: str
) -> None:
    fleet = serve(tmp_path / "fleet", {TREEPLANE: naming(used)}, used)
    fleet.repo.commit({TREEPLANE: naming(named)})
    beginning = begin(where(fleet.repo.path), tmp_path / "data")
    assert beginning.recorded is not None
    assert beginning.recorded.commit.id == fleet.repo.repo.ref(f"refs/heads/{used}")
    assert beginning.recorded.source.id == fleet.repo.commits[0]


@everywhere
def test_a_branch_of_the_heads_name_that_is_no_record_does_not_count(tmp_path: Path, where: Where) -> None:
    fleet = serve(tmp_path / "fleet")
    head = fleet.repo.commit({TREEPLANE: naming("elsewhere")})
    git("-C", fleet.repo.path, "branch", "elsewhere", head)
    beginning = begin(where(fleet.repo.path), tmp_path / "data")
    assert beginning.recorded is not None
    assert beginning.recorded.commit.id == fleet.repo.repo.ref(f"refs/heads/{STATUS_BRANCH}")


@pytest.mark.parametrize("kind", ["about another commit", "under no such name", "of another branch", "not of a fleet"])
def test_what_looks_like_a_status_branch_does_not_win(tmp_path: Path, kind: str) -> None:
    fleet = serve(tmp_path / "fleet")
    repo, begun = fleet.repo, fleet.repo.head
    head = repo.commit({TREEPLANE: naming("elsewhere")})
    match kind:
        case "about another commit":
            forge(repo, "elsewhere", begun)
        case "under no such name":
            forge(repo, "other", head)
        case "of another branch":
            git("-C", repo.path, "branch", "second", head)
            made = forge(repo, "elsewhere", head)
            facts = f"id: {repo.commits[0]}\nrevision: 5\nbranch: second\n"
            tree = edit_tree(repo.repo, repo.repo.commit(made).tree, {"fleet.yaml": facts.encode()})
            message = f"Record\n\nSource-Commit: {head}\n"
            commit_tree(repo.repo, tree, [made, head], message, 1_800_000_000, "refs/heads/elsewhere", made)
        case _:
            made = forge(repo, "elsewhere", head)
            tree = edit_tree(repo.repo, repo.repo.commit(made).tree, {"fleet.yaml": b"[" * 100_000})
            message = f"Record\n\nSource-Commit: {head}\n"
            commit_tree(repo.repo, tree, [made, head], message, 1_800_000_000, "refs/heads/elsewhere", made)
    beginning = begin(repo.path, tmp_path / "data")
    assert beginning.recorded is not None
    assert beginning.recorded.commit.id == repo.repo.ref(f"refs/heads/{STATUS_BRANCH}")


@everywhere
def test_of_two_that_nothing_tells_apart_neither_is_taken(tmp_path: Path, where: Where) -> None:
    fleet = serve(tmp_path / "fleet")
    repo = fleet.repo
    forge(repo, "elsewhere", repo.commit({TREEPLANE: naming("elsewhere")}))
    with pytest.raises(StartRefused, match="it cannot be told which is the status branch") as refused:
        begin(where(repo.path), tmp_path / "data")
    commands = [line.strip() for line in str(refused.value).splitlines() if line.startswith("  ")]
    assert len(commands) == 2
    [command] = [line for line in commands if line.endswith(" elsewhere")]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    beginning = begin(where(repo.path), tmp_path / "data")
    assert beginning.recorded is not None
    assert beginning.recorded.source.id == repo.commits[0]


def test_who_has_served_knows(tmp_path: Path) -> None:
    """With its data directory a server is not impressed by what is pushed."""
    fleet = serve(tmp_path / "fleet")
    repo, data = fleet.repo, tmp_path / "data"
    mirror_of(repo.path, data).keep_served(repo.head)
    forge(repo, "elsewhere", repo.commit({TREEPLANE: naming("elsewhere")}))
    beginning = begin(repo.path, data)
    assert beginning.recorded is not None
    assert beginning.recorded.source.id == repo.commits[0]


def test_a_branch_that_is_elsewhere_is_asked_for_by_its_own_name(tmp_path: Path) -> None:
    """The clone has one branch, whose head names another status branch: it does not begin anew."""
    fleet = serve(tmp_path / "fleet")
    fleet.repo.commit({TREEPLANE: naming("elsewhere")})
    work = tmp_path / "work"
    git("clone", "-q", "--single-branch", fleet.repo.path, work)
    with pytest.raises(
        StartRefused, match=f"its status branch, {STATUS_BRANCH}, is not here: the origin of"
    ) as refused:
        begin(work, tmp_path / "data")
    [command, *_] = [line.strip() for line in str(refused.value).splitlines() if line.startswith("  ")]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    assert begin(work, tmp_path / "data").recorded is not None


def test_what_was_recorded_of_another_branch_in_the_same_repository_is_none_of_ours(tmp_path: Path) -> None:
    """Two fleets in one repository: the second one branched off, and was given a status branch of its own."""
    fleet = serve(tmp_path / "fleet")
    repo = fleet.repo
    facts = f"id: {repo.commits[0]}\nrevision: 5\nbranch: main\n"
    status = str(repo.repo.ref(f"refs/heads/{STATUS_BRANCH}"))
    tree = edit_tree(repo.repo, repo.repo.commit(status).tree, {"fleet.yaml": facts.encode()})
    message = f"Record\n\nSource-Commit: {repo.head}\n"
    commit_tree(repo.repo, tree, [status, repo.head], message, 1_800_000_000, f"refs/heads/{STATUS_BRANCH}", status)
    git("-C", repo.path, "branch", "second", "main")
    second = FleetRepo(repo.path, "second")
    second.commit({TREEPLANE: naming("of-the-second")})
    mirror = Mirror(_made(tmp_path / "data"), str(repo.path), "second", STATUS_BRANCH)
    heads = Lookout(mirror, Teller(Report())).first()
    assert mirror.status_branch == "of-the-second"
    assert heads is not None
    assert heads.status is None


def test_a_hosted_repository_guards_the_branch_in_use(tmp_path: Path) -> None:
    """From before the first look on: the hook is installed by the command line."""
    fleet = serve(tmp_path / "fleet", {TREEPLANE: naming("observed")}, "observed")
    fleet.repo.commit({TREEPLANE: naming("elsewhere")})
    data = _made(tmp_path / "data")
    (data / "repo").mkdir()
    git("clone", "-q", "--bare", fleet.repo.path, data / "repo" / "fleet.git")
    resolve(str(_made(tmp_path / "manifests")), data, "main")
    hook = (data / "repo" / "fleet.git" / "hooks" / "update").read_text()
    assert "refs/heads/observed" in hook
    assert "refs/heads/elsewhere" not in hook


def test_validate_says_of_such_a_commit_what_the_server_says(tmp_path: Path) -> None:
    fleet = serve(tmp_path / "fleet")
    fleet.repo.commit({TREEPLANE: naming("elsewhere")})
    checked = validate_revision(fleet.repo.path, "main")
    assert checked.base.id == fleet.repo.commits[0]
    assert "spec.statusBranch is elsewhere" in checked.render("text")


def test_names_are_those_of_readable_files_alone(tmp_path: Path) -> None:
    repo = FleetRepo(tmp_path / "fleet.git")
    repo.commit({"README.md": "x"})
    assert places(repo.repo, repo.head) == [STATUS_PLACE]
    repo.commit({**BEGINNING, TREEPLANE: naming("one")})
    repo.commit({TREEPLANE: "kind: ["})
    repo.commit({TREEPLANE: naming("two"), f"{A}/more.yaml": configmap("more")})
    assert [each.branch for each in places(repo.repo, repo.head)] == ["two", "one"]


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory

"""A fleet whose status branch has a repository of its own: what a start goes on from, and what it refuses."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo
from support.loadedfleet import BEGINNING, A, LoadedFleet, configmap
from support.statusrepo import REF, TREEPLANE, Server, StatusRepo, begin, recording_in, serve

from reconciler.commands.installation import Installation
from reconciler.commands.lookout import StatusSaid
from reconciler.commands.start import StartRefused
from reconciler.commands.statusmove import StatusMove
from reconciler.commands.validate import validate_revision
from reconciler.layout.fleet import STATUS_BRANCH
from reconciler.loading.heads import BranchSettings
from reconciler.repository.objects import Repository
from reconciler.repository.statusaddress import StatusAddress, barred
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch.clones import fetching_for, recorded_for

PAGE = Path(__file__).parents[4] / "docs" / "repositories.md"

Where = Callable[[Path], Path | str]
SOURCES: dict[str, Where] = {"here": lambda path: path, "a URL": lambda path: f"file://{path}"}
everywhere = pytest.mark.parametrize("where", SOURCES.values(), ids=SOURCES)


@pytest.fixture
def status(tmp_path: Path) -> StatusRepo:
    return StatusRepo(tmp_path / "status.git")


def commands(refused: pytest.ExceptionInfo[StartRefused]) -> list[str]:
    return [line.strip() for line in str(refused.value).splitlines() if line.startswith("  ")]


@everywhere
def test_a_server_that_lost_all_goes_on_from_it(tmp_path: Path, status: StatusRepo, where: Where) -> None:
    fleet = serve(tmp_path / "fleet", status)
    assert fleet.repo.repo.ref(REF) is None
    beginning = begin(where(fleet.repo.path), tmp_path / "data")
    assert beginning.recorded is not None
    assert beginning.recorded.commit.id == status.head
    assert beginning.recorded.source.id == fleet.repo.commits[0]


@everywhere
def test_it_has_what_the_fleets_own_repository_lost(tmp_path: Path, status: StatusRepo, where: Where) -> None:
    """A forge that was put back from a backup: what was served by then is no gap in what is recovered."""
    fleet = serve(tmp_path / "fleet", status, close=False)
    fleet.commit({f"{A}/app.yaml": configmap(c="d")})
    fleet.publish()
    fleet.close()
    served = fleet.repo.head
    old = tmp_path / "old.git"
    subprocess.run(["git", "init", "-q", "--bare", str(old)], check=True)
    before = f"{fleet.repo.commits[0]}:refs/heads/main"
    subprocess.run(["git", "-C", str(fleet.repo.path), "push", "-q", str(old), before], check=True)
    server = Server(where(old), tmp_path / "data")
    beginning = server.begin()
    assert beginning is not None
    assert beginning.recorded is not None
    assert beginning.recorded.source.id == served
    assert server.mirror.repository.has(served)


@everywhere
def test_nothing_begins_while_it_does_not_answer(tmp_path: Path, status: StatusRepo, where: Where) -> None:
    fleet = serve(tmp_path / "fleet", status)
    status.leaves()
    server = Server(where(fleet.repo.path), tmp_path / "data")
    assert server.begin() is None
    assert "nothing is recorded here, and the status branch is in a repository of its own" in server.troubles[0]
    assert f"git ls-remote {status.url}" in server.troubles[0]
    status.comes_back()
    assert begin(where(fleet.repo.path), tmp_path / "data").recorded is not None


@everywhere
def test_who_has_what_it_had_goes_on_without_it(tmp_path: Path, status: StatusRepo, where: Where) -> None:
    fleet = serve(tmp_path / "fleet", status)
    data = tmp_path / "data"
    first = begin(where(fleet.repo.path), data)
    assert first.recorded is not None
    status.leaves()
    server = Server(where(fleet.repo.path), data)
    beginning = server.begin()
    assert beginning is not None
    assert beginning.recorded is not None
    assert beginning.recorded.commit == first.recorded.commit
    assert server.lookout.status_away
    assert not server.lookout.away
    assert server.troubles[0].startswith("the status branch's repository: ")


def test_a_new_fleet_begins_with_an_empty_one(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    status.emptied()
    assert begin(fleet.repo.path, tmp_path / "data").recorded is None


def test_who_wrote_it_does_not_begin_anew_when_it_is_emptied(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    data = tmp_path / "data"
    assert begin(fleet.repo.path, data).recorded is not None
    Installation(data).claim(fleet.repo.commits[0])
    shutil.rmtree(data / "mirror")
    status.emptied()
    with pytest.raises(StartRefused, match="this data directory wrote it") as refused:
        begin(fleet.repo.path, data)
    assert f"push {status.url}" in commands(refused)[0]


def test_that_of_another_fleet_is_none(tmp_path: Path, status: StatusRepo) -> None:
    """treeplane.yaml was copied from another fleet, with the address."""
    theirs = serve(tmp_path / "theirs", status)
    mine = FleetRepo(tmp_path / "mine.git")
    mine.commit({**BEGINNING, TREEPLANE: recording_in(status.url), f"{A}/app.yaml": configmap(mine="yes")})
    with pytest.raises(StartRefused, match=f"is that of another fleet, {theirs.repo.commits[0]}") as refused:
        begin(mine.path, tmp_path / "data")
    assert f"metadata.uid: {theirs.repo.commits[0]}" in str(refused.value)
    uid = recording_in(status.url).replace("metadata: {", f"metadata: {{uid: '{theirs.repo.commits[0]}', ")
    assert "uid:" in uid
    mine.commit({TREEPLANE: uid})
    found = begin(mine.path, tmp_path / "again")
    assert found.recorded is not None, "whoever writes the history anew can say that it is the same fleet"


def test_what_is_no_record_is_not_written_over(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    repo = status.repo
    head = str(status.head)
    tree = edit_tree(repo, repo.commit(head).tree, {"README.md": b"somebody's work\n"})
    mine = commit_tree(repo, tree, [], "Somebody's work\n", 1_800_000_000, REF, head)
    with pytest.raises(StartRefused, match="is no status branch"):
        begin(fleet.repo.path, tmp_path / "data")
    assert status.head == mine


@pytest.mark.parametrize("kind", ["another", "none"])
@everywhere
def test_the_repository_in_use_is_found_whatever_the_head_names(
    tmp_path: Path, status: StatusRepo, where: Where, kind: str
) -> None:
    fleet = serve(tmp_path / "fleet", status)
    other = StatusRepo(tmp_path / "other.git").url if kind == "another" else ""
    fleet.repo.commit({TREEPLANE: recording_in(other)})
    beginning = begin(where(fleet.repo.path), tmp_path / "data")
    assert beginning.recorded is not None
    assert beginning.recorded.commit.id == status.head


def test_of_several_repositories_each_has_to_answer(tmp_path: Path, status: StatusRepo) -> None:
    """The one that is away may be the one in use."""
    fleet = serve(tmp_path / "fleet", None)
    fleet.repo.commit({TREEPLANE: recording_in(status.url)})
    assert begin(fleet.repo.path, tmp_path / "data").recorded is not None
    status.leaves()
    server = Server(fleet.repo.path, tmp_path / "other")
    assert server.begin() is None
    assert "status.git" in server.troubles[0]


def test_who_names_many_repositories_has_none_of_them_asked(tmp_path: Path) -> None:
    """By a server. A clone asks nobody, and knows as ever."""
    fleet = serve(tmp_path / "fleet", None)
    for number in range(6):
        fleet.repo.commit({TREEPLANE: recording_in(f"https://127.0.0.1:1/{number}.git")})
    with pytest.raises(StartRefused, match="named 6 repositories for it, which are not all asked"):
        Server(fleet.repo.path, tmp_path / "data").begin()
    repo = Repository(fleet.repo.path)
    for tracked in (True, False):
        recorded = recorded_for(repo, fleet.repo.head, tracked=tracked)
        assert recorded is not None
        assert recorded.source.id == fleet.repo.commits[0]


def test_a_forged_one_does_not_win(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    forged = StatusRepo(tmp_path / "forged.git")
    head = fleet.repo.commit({TREEPLANE: recording_in(forged.url)})
    repo = forged.repo
    subprocess.run(
        ["git", "-C", str(forged.path), "fetch", "-q", status.url, f"{REF}:refs/x", "--update-head-ok"], check=True
    )
    subprocess.run(["git", "-C", str(forged.path), "fetch", "-q", str(fleet.repo.path), head], check=True)
    tree = forged.repo.commit(str(status.head)).tree
    message = f"Record\n\nSource-Commit: {head}\nWriter: 0123/1\nEpoch: 7\n"
    commit_tree(repo, tree, [head], message, 1_800_000_000, REF, None)
    with pytest.raises(StartRefused, match="it cannot be told which") as refused:
        begin(fleet.repo.path, tmp_path / "data")
    found = commands(refused)
    assert f"git push {forged.url} --delete treeplane/status" in found
    subprocess.run(next(each for each in found if forged.url in each), shell=True, check=True, capture_output=True)
    assert begin(fleet.repo.path, tmp_path / "again").recorded is not None


def test_what_the_fleets_own_repository_has_is_a_trace(tmp_path: Path, status: StatusRepo) -> None:
    """Somebody began to move it: with its own repository emptied, nothing begins anew by accident."""
    fleet = serve(tmp_path / "fleet", status)
    head = str(status.head)
    subprocess.run(["git", "-C", str(status.path), "push", "-q", str(fleet.repo.path), f"{REF}:{REF}"], check=True)
    status.emptied()
    data = tmp_path / "data"
    with pytest.raises(StartRefused, match="was served before") as refused:
        begin(fleet.repo.path, data)
    subprocess.run(commands(refused)[0], shell=True, check=True, capture_output=True)
    assert status.head == head
    assert begin(fleet.repo.path, data).recorded is not None


# -- moved by who runs the server


def moving(fleet: LoadedFleet, address: str) -> None:
    """The commit is served by a server that was told so, and recorded where the branch was."""
    fleet.loader = fleet.new_loader(BranchSettings(status=address or "own"))
    loaded = fleet.commit({TREEPLANE: recording_in(address)})
    assert not loaded.problems
    fleet.publish()
    fleet.mirror.keep_served(fleet.repo.head)


@everywhere
def test_who_runs_the_server_may_move_it(tmp_path: Path, status: StatusRepo, where: Where) -> None:
    fleet = serve(tmp_path / "fleet", None, close=False)
    held = fleet.commit({TREEPLANE: recording_in(status.url)})
    assert f"treeplane up --status-repository {status.url}" in str(held.problems[0])
    moving(fleet, status.url)
    assert status.head is None
    old = fleet.repo.repo.ref(REF)
    # The next start: what is recorded goes there with all of its history.
    assert Server(fleet.repo.path, fleet.directory).begin() is not None
    fleet.mirror.record_at(StatusAddress(STATUS_BRANCH, status.url))
    fleet.publish()
    assert status.head == fleet.mirror.status()
    assert status.repo.has(str(old))
    assert fleet.repo.repo.ref(REF) == old, "and the old branch stays"
    found = begin(where(fleet.repo.path), tmp_path / "data")
    assert found.recorded is not None
    assert found.recorded.commit.id == status.head
    fleet.close()


def test_a_server_that_runs_goes_there_once_the_old_place_says_so(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", None, close=False)
    move = StatusMove(fleet.mirror)
    assert not move.is_due("")
    assert not move.is_due(fleet.repo.head)
    fleet.loader = fleet.new_loader(BranchSettings(status=status.url))
    fleet.commit({TREEPLANE: recording_in(status.url)})
    assert not move.is_due(fleet.repo.head), "nothing is recorded of it"
    fleet.writer().flush()
    assert not move.is_due(fleet.repo.head), "that is not pushed"
    fleet.publish()
    assert move.is_due(fleet.repo.head)
    fleet.mirror.record_at(StatusAddress(STATUS_BRANCH, status.url))
    assert not move.is_due(fleet.repo.head)
    fleet.close()


def test_a_loss_in_the_middle_of_a_move_does_not_begin_anew(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", None, close=False)
    moving(fleet, status.url)
    fleet.close()
    data = tmp_path / "data"
    with pytest.raises(StartRefused, match="has treeplane/status, where it was before") as refused:
        begin(fleet.repo.path, data)
    subprocess.run(commands(refused)[0], shell=True, check=True, capture_output=True)
    found = begin(fleet.repo.path, data)
    assert found.recorded is not None
    assert found.recorded.commit.id == status.head == fleet.repo.repo.ref(REF)


def test_it_is_moved_back_too(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status, close=False)
    moving(fleet, "")
    server = Server(fleet.repo.path, fleet.directory)
    assert server.begin() is not None
    assert not server.mirror.is_apart
    fleet.mirror.record_at(server.mirror.status_place)
    fleet.publish()
    found = begin(fleet.repo.path, tmp_path / "data")
    assert found.recorded is not None
    assert found.recorded.commit.id == fleet.repo.repo.ref(REF)
    fleet.close()


def test_what_it_is_moved_to_is_no_other_fleets(tmp_path: Path, status: StatusRepo) -> None:
    theirs = serve(tmp_path / "theirs", status)
    fleet = serve(tmp_path / "fleet", None, {f"{A}/app.yaml": configmap(mine="yes")}, close=False)
    moving(fleet, status.url)
    fleet.close()
    with pytest.raises(StartRefused, match=f"is that of another fleet, {theirs.repo.commits[0]}"):
        Server(fleet.repo.path, fleet.directory).begin()


def test_the_word_of_who_runs_the_server_decides_between_several(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    other = StatusRepo(tmp_path / "other.git")
    fleet.repo.commit({TREEPLANE: recording_in(other.url)})
    other.leaves()
    assert Server(fleet.repo.path, tmp_path / "data").begin() is None
    beginning = Server(fleet.repo.path, tmp_path / "said", StatusSaid(repository=status.url)).begin()
    assert beginning is not None
    assert beginning.recorded is not None
    assert beginning.recorded.commit.id == status.head
    nowhere = Server(fleet.repo.path, tmp_path / "nowhere", StatusSaid(repository="file:///nowhere.git"))
    assert nowhere.begin() is None, "what treeplane.yaml never named is not gone to"


def test_one_that_is_gone_for_good_lets_begin_anew_on_purpose(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    status.leaves()
    waiting = Server(fleet.repo.path, tmp_path / "data")
    assert waiting.begin() is None
    head = fleet.repo.head
    assert f"treeplane up --new-identities {head}" in waiting.troubles[0]
    server = Server(fleet.repo.path, tmp_path / "data", StatusSaid(anew=head))
    server.teller.status_branch = lambda _: None  # type: ignore[method-assign]
    beginning = server.begin()
    assert beginning is not None
    assert beginning.recorded is None
    other = Server(fleet.repo.path, tmp_path / "other", StatusSaid(anew=fleet.repo.commit({"README.md": "x"})[:-1]))
    assert other.begin() is None, "it counts for one commit alone"


def test_one_whose_address_changed_is_found_by_what_the_page_says(
    tmp_path: Path, status: StatusRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = serve(tmp_path / "fleet", status)
    moved = status.path.rename(tmp_path / "moved.git")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    [typed] = re.findall(r"`(git config --global url\.<new address>[^`]*)`", PAGE.read_text())
    words = typed.replace("<new address>", f"file://{moved}").replace("<old address>", status.url).split()
    subprocess.run(words, check=True)
    assert begin(fleet.repo.path, tmp_path / "data").recorded is not None


@pytest.mark.parametrize(
    ("source", "address", "said"),
    [
        ("https://127.0.0.1:1/fleet.git", "file:///srv/status.git", "is on the server's machine"),
        ("https://127.0.0.1:1/fleet.git", "http://127.0.0.1:1/status.git", "without encryption"),
        ("git@127.0.0.1:fleet.git", "file:///srv/status.git", "is on the server's machine"),
        ("/srv/fleet.git", "file:///srv/status.git", ""),
        ("file:///srv/fleet.git", "file:///srv/status.git", ""),
        ("http://127.0.0.1:1/fleet.git", "http://127.0.0.1:1/status.git", ""),
        ("https://127.0.0.1:1/fleet.git", "git@127.0.0.1:status.git", ""),
    ],
)
def test_an_address_is_gone_to_only_beside_one_like_it(source: str, address: str, said: str) -> None:
    assert said in barred(address, source)
    assert bool(said) == bool(barred(address, source))


# -- in a clone, without a server


def test_a_clone_knows_what_its_remote_brought(tmp_path: Path, status: StatusRepo) -> None:
    fleet = serve(tmp_path / "fleet", status)
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(fleet.repo.path), str(clone)], check=True)
    assert recorded_for(Repository(clone), fleet.repo.head) is None
    command = fetching_for(Repository(clone), fleet.repo.head)
    assert command == f"git remote add status {status.url}; git fetch status"
    subprocess.run(command, shell=True, check=True, cwd=clone, capture_output=True)
    recorded = recorded_for(Repository(clone), fleet.repo.head)
    assert recorded is not None
    assert recorded.commit.id == status.head
    fleet.repo.commit({TREEPLANE: recording_in("")})
    subprocess.run(["git", "-C", str(clone), "pull", "-q"], check=True)
    checked = validate_revision(clone, "HEAD")
    assert checked.base.id == fleet.repo.commits[0]
    assert f"spec.status.repository is not there, but this fleet's status is in {status.url}" in checked.render("text")


def test_a_branch_of_that_name_in_the_fleets_own_repository_is_nobodys_word(tmp_path: Path, status: StatusRepo) -> None:
    """Whoever may push there says nothing by it: neither to a clone nor to a hook."""
    fleet = serve(tmp_path / "fleet", status)
    subprocess.run(["git", "-C", str(status.path), "push", "-q", str(fleet.repo.path), f"{REF}:{REF}"], check=True)
    repo = Repository(fleet.repo.path)
    assert recorded_for(repo, fleet.repo.head) is None
    assert recorded_for(repo, fleet.repo.head, tracked=False) is None
    for name in ("status", "origin"):
        subprocess.run(
            ["git", "-C", str(repo.path), "update-ref", f"refs/remotes/{name}/treeplane/status", REF], check=True
        )
    assert recorded_for(repo, fleet.repo.head, tracked=False) is None

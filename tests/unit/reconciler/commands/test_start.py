"""What a start goes on from, and which one is refused with the command that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.formats import write_format
from support.loadedfleet import LoadedFleet

from reconciler.commands.installation import Installation
from reconciler.commands.report import Report
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Beginning, Start, StartRefused
from reconciler.commands.teller import Teller
from reconciler.loading.heads import BranchSettings
from reconciler.repository.mirror import Mirror
from reconciler.repository.write import move_ref
from reconciler.statusbranch import format

STATUS = "treeplane/status"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    """Served from main, and recorded."""
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    made.publish()
    yield made
    made.close()


def start(fleet: LoadedFleet, branch: str, path: str = "") -> Beginning:
    """As a server that is told to serve `path` of `branch`, with a data directory of its own."""
    folder = fleet.directory.parent / "another"
    source = str(fleet.repo.path)
    settings = ReconcileSettings(
        folder, folder, branch, path, source=source, url="https://x", local_url="https://x", command=("treeplane", "up")
    )
    mirror = Mirror(folder, source, branch, STATUS, folder=path)
    return Start(settings, mirror, Installation(folder), Teller(Report()), first=True).begin(mirror.refresh())


def branch(fleet: LoadedFleet, name: str, commit: str | None) -> None:
    move_ref(fleet.repo.repo, f"refs/heads/{name}", commit, fleet.repo.repo.ref(f"refs/heads/{name}"))


def test_the_status_branch_says_whose_it_is(fleet: LoadedFleet) -> None:
    recorded = start(fleet, "main").recorded
    assert recorded is not None
    assert recorded.facts().branch == "main"


def test_a_status_branch_of_a_newer_treeplane_is_refused_and_stays_as_it_is(fleet: LoadedFleet) -> None:
    repo, head = fleet.repo.repo, fleet.repo.repo.ref(f"refs/heads/{STATUS}")
    assert head is not None
    newer = write_format(repo, head, format.FORMAT + 1)
    move_ref(repo, f"refs/heads/{STATUS}", newer, head)
    with pytest.raises(StartRefused, match=f"format {format.FORMAT + 1}, in which a newer Treeplane writes"):
        start(fleet, "main")
    assert repo.ref(f"refs/heads/{STATUS}") == newer


def test_what_a_stranger_pushed_there_keeps_nobody_from_starting(fleet: LoadedFleet) -> None:
    """Whoever may push to the branch may write any number; a server that has its own goes on from that."""
    repo, head = fleet.repo.repo, fleet.repo.repo.ref(f"refs/heads/{STATUS}")
    assert head is not None
    start(fleet, "main")
    move_ref(repo, f"refs/heads/{STATUS}", write_format(repo, head, format.FORMAT + 1), head)
    begun = start(fleet, "main").recorded
    assert begun is not None
    assert begun.commit.id == head


def test_one_of_this_format_or_without_any_is_gone_on_from(fleet: LoadedFleet) -> None:
    repo, head = fleet.repo.repo, fleet.repo.repo.ref(f"refs/heads/{STATUS}")
    assert head is not None
    entry = repo.entry_at(repo.commit(head).tree, format.FLEET)
    assert entry is not None
    assert b"format" not in repo.blob(entry.id)  # the first format is the one that is not named
    move_ref(repo, f"refs/heads/{STATUS}", write_format(repo, head, format.FORMAT), head)
    assert start(fleet, "main").recorded is not None


def test_a_server_for_another_folder_refuses(fleet: LoadedFleet) -> None:
    with pytest.raises(
        StartRefused, match=r"stands in the top of the repository.* not in folder fleets/prod"
    ) as refused:
        start(fleet, "main", "fleets/prod")
    assert "treeplane up --path ." in str(refused.value)
    assert "git mv treeplane.yaml workspaces fleets/prod/" in str(refused.value)
    fleet.repo.elsewhere({f"fleets/prod/{path}": text for path, text in fleet.first_files().items()})
    with pytest.raises(StartRefused, match="is another, and needs a status branch of its own"):
        start(fleet, "main", "fleets/prod")


def test_it_goes_on_in_a_folder_that_it_was_moved_to_and_in_no_other(fleet: LoadedFleet) -> None:
    files, served = fleet.first_files(), fleet.repo.head
    fleet.repo.elsewhere({**dict.fromkeys(files), **{f"fleets/prod/{path}": text for path, text in files.items()}})
    with pytest.raises(StartRefused, match=r"has no fleets/dev/treeplane.yaml, so it did not move there"):
        start(fleet, "main", "fleets/dev")
    recorded = start(fleet, "main", "fleets/prod").recorded
    assert recorded is not None
    assert recorded.source.id == served
    fleet.repo.reset(served)
    fleet.repo.commit(dict.fromkeys(files), parent=served)
    other = fleet.repo.head
    branch(fleet, "main", None)
    fleet.repo.elsewhere({f"fleets/prod/{path}": text for path, text in files.items()})
    assert not fleet.repo.repo.is_ancestor(other, fleet.repo.head)
    with pytest.raises(StartRefused, match="does not contain the commit that was served"):
        start(fleet, "main", "fleets/prod")


def test_a_server_for_another_branch_refuses(fleet: LoadedFleet) -> None:
    branch(fleet, "trunk", fleet.repo.head)
    with pytest.raises(StartRefused, match="served from branch main") as refused:
        start(fleet, "trunk")
    assert "treeplane up --branch main" in str(refused.value)
    assert f"git -C {fleet.repo.path} branch -D main" in str(refused.value)


def test_a_branch_that_was_renamed_is_followed(fleet: LoadedFleet) -> None:
    branch(fleet, "trunk", fleet.repo.head)
    branch(fleet, "main", None)
    begun = start(fleet, "trunk")
    assert begun.recorded is not None
    assert begun.heads.desired == fleet.repo.commits[-1]


def test_another_branch_is_no_other_name_for_one_that_is_gone(fleet: LoadedFleet) -> None:
    served = fleet.repo.head
    other = fleet.repo.commit({"elsewhere": "x"}, parent=None)
    branch(fleet, "trunk", fleet.repo.commits[0])
    branch(fleet, "main", None)
    fleet.mirror.keep_status(fleet.mirror.refresh().status or "")
    assert other != served
    orphan = fleet.repo.repo.git.create_commit(
        None, *(2 * [fleet.repo.repo.git.get(served).author]), "orphan", fleet.repo.repo.commit(served).tree, []
    )
    branch(fleet, "trunk", str(orphan))
    with pytest.raises(StartRefused, match="does not contain the commit that was served") as refused:
        start(fleet, "trunk")
    assert f"git push {fleet.repo.path} {served}:refs/heads/main" in str(refused.value)


def test_what_is_served_by_another_name_is_recorded_by_it(fleet: LoadedFleet) -> None:
    """With the next start, although nothing else changed."""
    fleet.loader._branch = BranchSettings("trunk")
    fleet.loader.recheck()
    fleet.publish()
    recorded = fleet.recorded()
    assert recorded is not None
    assert recorded.facts().branch == "trunk"
    assert fleet.writer().flush() is None

"""A fleet that was served before does not begin anew by accident."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from support.fleetrepo import FleetRepo
from support.loadedfleet import BEGINNING, A, LoadedFleet
from support.shipped import WORKLOAD, binding
from support.swallowing import swallowing

from reconciler.commands.installation import Installation
from reconciler.commands.report import Report
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Beginning, Start, StartRefused, refuse_incomplete
from reconciler.commands.teller import Teller
from reconciler.repository.mirror import Mirror
from reconciler.repository.objects import Repository

STATUS = "treeplane/status"
TARGET = (
    f"{binding(WORKLOAD)}---\n"
    "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: eu}\n"
    "spec: {connection: {kubeconfigSecretRef: {name: eu}}}\n"
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[FleetRepo]:
    """A repository with a status branch."""
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.begin()
    fleet.publish()
    fleet.close()
    yield fleet.repo


def git(*arguments: str | Path) -> str:
    command = ["git", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def begin(
    source: Path | str, data: Path, *, new_identities: str = "", installation: Installation | None = None
) -> Beginning:
    """As a server with an empty store."""
    data.mkdir(exist_ok=True)
    settings = ReconcileSettings(
        data,
        data,
        "main",
        source=str(source),
        url="u",
        local_url="u",
        new_identities=new_identities,
        command=("treeplane", "up"),
    )
    mirror = Mirror(data, str(source), "main", STATUS)
    refuse_incomplete(mirror)
    start = Start(settings, mirror, installation or Installation(data), Teller(Report()), first=True)
    beginning = start.begin(mirror.refresh())
    start.begins_anew(beginning)
    return beginning


def run(refused: StartRefused) -> None:
    """The first command that a refusal prints."""
    [command, *_] = [line.strip() for line in str(refused).splitlines() if line.startswith("  ")]
    subprocess.run(command, shell=True, check=True, capture_output=True)


def test_a_fleet_that_never_was_served_begins(tmp_path: Path) -> None:
    repo = FleetRepo(tmp_path / "new.git")
    repo.commit(BEGINNING)
    assert begin(repo.path, tmp_path / "data").recorded is None


def test_a_clone_of_one_branch_is_refused_with_what_fetches_the_other(tmp_path: Path, served: FleetRepo) -> None:
    work = tmp_path / "work"
    git("clone", "-q", "--single-branch", served.path, work)
    with pytest.raises(StartRefused, match=r"the origin of .* has it") as refused:
        begin(work, tmp_path / "data")
    run(refused.value)
    assert begin(work, tmp_path / "data").recorded is not None


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "ref", ["refs/remotes/upstream/treeplane/status", "refs/treeplane/status/2026-01-01", "refs/remotes/origin/x"]
)
def test_a_ref_that_holds_it_is_enough(tmp_path: Path, served: FleetRepo, ref: str, packed: bool) -> None:
    work = tmp_path / "work.git"
    git("init", "-q", "--bare", work)
    git("-C", work, "fetch", "-q", served.path, "main:main", f"{STATUS}:{ref}")
    if packed:
        git("-C", work, "pack-refs", "--all")
    if ref.endswith("/x"):
        assert begin(work, tmp_path / "data").recorded is None, "another branch"
        return
    with pytest.raises(StartRefused, match=ref) as refused:
        begin(work, tmp_path / "data")
    run(refused.value)
    assert begin(work, tmp_path / "data").recorded is not None


def test_a_url_is_asked_for_what_it_kept(tmp_path: Path, served: FleetRepo) -> None:
    git("-C", served.path, "update-ref", "refs/treeplane/status/2026-01-01", f"refs/heads/{STATUS}")
    git("-C", served.path, "branch", "-D", STATUS)
    with pytest.raises(StartRefused, match="refs/treeplane/status/2026-01-01"):
        begin(f"file://{served.path}", tmp_path / "data")


def test_what_the_data_directory_wrote_it_knows(tmp_path: Path, served: FleetRepo) -> None:
    """Store and mirror are gone, and somebody deleted the branch."""
    data = tmp_path / "data"
    data.mkdir()
    fleet = Repository(served.path).root_commit(served.head)
    before = Installation(data)
    before.claim(fleet)
    clone = tmp_path / "clone"
    git("clone", "-q", served.path, clone)
    git("-C", served.path, "branch", "-D", STATUS)
    with pytest.raises(StartRefused, match="this data directory wrote it"):
        begin(served.path, data)
    git("-C", clone, "push", "-q", served.path, f"origin/{STATUS}:refs/heads/{STATUS}")
    assert begin(served.path, data).recorded is not None
    other = FleetRepo(tmp_path / "other.git")
    other.commit(BEGINNING | {"README.md": "another fleet"})
    assert begin(other.path, tmp_path / "data2", installation=Installation(data)).recorded is None


@pytest.mark.parametrize("real", [False, True])
def test_an_origin_that_does_not_answer_stops_only_real_clusters(
    tmp_path: Path, real: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = FleetRepo(tmp_path / "fleet.git")
    repo.commit(BEGINNING | ({f"{A}/target.yaml": TARGET} if real else {}))
    for where in ("https://127.0.0.1:1/git/fleet.git", str(tmp_path / "gone")):
        git("-C", repo.path, "config", "remote.origin.url", where)
        if real:
            with pytest.raises(StartRefused, match=r"real clusters: root:a:eu"):
                begin(repo.path, tmp_path / "data")
        else:
            assert begin(repo.path, tmp_path / "data").recorded is None


@pytest.mark.slow
def test_an_origin_that_swallows_is_not_waited_for(tmp_path: Path, eventually: Callable[..., object]) -> None:
    repo = FleetRepo(tmp_path / "fleet.git")
    repo.commit(BEGINNING)
    with swallowing() as proxy:
        git("-C", repo.path, "config", "remote.origin.url", f"git://127.0.0.1:{proxy.port}/x")
        assert begin(repo.path, tmp_path / "data").recorded is None
        assert proxy.taken == 1


def test_new_identities_are_begun_for_one_head_alone(tmp_path: Path, served: FleetRepo) -> None:
    work = tmp_path / "work"
    git("clone", "-q", "--single-branch", served.path, work)
    head = served.head
    with pytest.raises(StartRefused) as refused:
        begin(work, tmp_path / "data", new_identities="1" * 40)
    assert str(refused.value).endswith(f"treeplane up --new-identities {head}")
    assert begin(work, tmp_path / "data", new_identities=head).recorded is None
    git("-C", work, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "next")
    with pytest.raises(StartRefused):
        begin(work, tmp_path / "data", new_identities=head)


@pytest.mark.parametrize("kind", ["shallow", "partial"])
def test_a_clone_that_is_not_whole_is_refused_with_what_completes_it(
    tmp_path: Path, served: FleetRepo, kind: str
) -> None:
    served.commit({"more": "x"})
    git("-C", served.path, "config", "uploadpack.allowFilter", "true")
    work = tmp_path / "work.git"
    how = ["--depth=1"] if kind == "shallow" else ["--filter=blob:none"]
    git("clone", "-q", "--bare", *how, f"file://{quote(str(served.path))}", work)
    with pytest.raises(StartRefused, match="shallow or partial clone") as refused:
        begin(work, tmp_path / "data")
    run(refused.value)
    git("-C", work, "fetch", "-q", "origin", f"+refs/heads/{STATUS}:refs/heads/{STATUS}")
    assert begin(work, tmp_path / "data").recorded is not None

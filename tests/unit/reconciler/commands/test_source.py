"""What `treeplane up` makes a repository of: nobody pushed that, and who runs the server is named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.fleetrepo import TREEPLANE_YAML, plain_fleet

from apiserver.endpoints.pushhooks import PUSHED
from reconciler.commands.failure import Failure
from reconciler.commands.source import check, resolve
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord, PushRecords

OPERATOR = PushRecord("", {"username": "shard-admin", "groups": ["system:masters"]}, operator=True)


def test_what_a_directory_seeded_and_what_a_clone_brought_is_the_operators(tmp_path: Path) -> None:
    manifests = plain_fleet(tmp_path / "manifests")
    hosted = resolve(str(manifests), tmp_path / "data", "main").hosted
    assert hosted is not None
    head = Repository(hosted).ref("refs/heads/main") or ""
    assert PushRecords(hosted).of(head) == OPERATOR
    # What is there already is not said again.
    (hosted / PUSHED / head).unlink()
    assert resolve(str(manifests), tmp_path / "data", "main").hosted == hosted
    assert PushRecords(hosted).of(head) is None

    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(hosted), str(clone)], check=True)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", "-C", str(clone), *who, "commit", "--quiet", "--allow-empty", "-m", "More"], check=True)
    shutil.rmtree(tmp_path / "data")
    hosted = resolve(str(clone), tmp_path / "other", "main").hosted
    assert hosted is not None
    new = Repository(hosted).ref("refs/heads/main") or ""
    assert new != head
    assert PushRecords(hosted).of(new) == OPERATOR


def test_a_directory_that_is_no_fleet_makes_nothing_and_is_asked_about_again(tmp_path: Path) -> None:
    directory, data = tmp_path / "manifests", tmp_path / "data"
    directory.mkdir()
    (directory / "app.yaml").write_text("kind: ConfigMap\n")
    for ask in (check, lambda named, data: resolve(named, data, "main")):
        with pytest.raises(Failure, match=r"is no fleet: it has no treeplane\.yaml, and holds files of manifests"):
            ask(str(directory), data)
        assert not data.exists()
    (directory / "workspaces" / "root").mkdir(parents=True)
    (directory / "treeplane.yaml").write_text("kind: Fleet\n")
    with pytest.raises(Failure, match=r"treeplane\.yaml:1: apiVersion is missing"):
        check(str(directory), data)
    (directory / "treeplane.yaml").write_text(TREEPLANE_YAML)
    check(str(directory), data)
    assert resolve(str(directory), data, "main").hosted is not None
    # From then on the repository is the truth, and the directory may go.
    (directory / "treeplane.yaml").unlink()
    check(str(directory), data)


def test_a_url_and_a_repository_are_not_asked_whether_they_are_fleets(tmp_path: Path) -> None:
    """What they hold is served once it is one: somebody will push it."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "empty")], check=True)
    for named in ("https://example.org/fleet.git", str(tmp_path / "empty"), str(tmp_path / "nowhere"), ""):
        check(named, tmp_path / "data")


@pytest.mark.parametrize("inside", [True, False])
def test_a_copy_that_differs_says_so_at_each_start_and_the_commands_push_it(tmp_path: Path, inside: bool) -> None:
    directory = plain_fleet(tmp_path / "my fleet")
    (directory / "workspaces" / "root" / "old.yaml").write_text("kind: ConfigMap\n")
    data = (directory if inside else tmp_path) / "data"
    hosted = resolve(str(directory), data, "main").hosted
    assert hosted is not None
    assert resolve(str(directory), data, "main").notes == ()
    (directory / "workspaces" / "root" / "old.yaml").unlink()
    (directory / "workspaces" / "root" / "new.yaml").write_text("kind: Secret\n")
    for _ in range(2):
        [note] = resolve(str(directory), data, "main").notes
        assert "is only a copy and differs from it" in note
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(hosted), str(clone)], check=True)
    for name, value in (("user.name", "t"), ("user.email", "t@example.com"), ("push.default", "current")):
        subprocess.run(["git", "-C", str(clone), "config", name, value], check=True)
    for hook in (hosted / "hooks").iterdir():
        hook.unlink()  # they ask the server, which does not run
    subprocess.run(note.splitlines()[-1], shell=True, cwd=clone, check=True, capture_output=True)
    assert resolve(str(directory), data, "main").notes == ()
    found = sorted(str(each.relative_to(clone)) for each in clone.rglob("*.yaml"))
    assert found == ["treeplane.yaml", "workspaces/root/new.yaml"]
    assert not (clone / "data").exists()

"""What `treeplane up` makes a repository of: nobody pushed that, and who runs the server is named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.fleetrepo import TREEPLANE_YAML

from apiserver.endpoints.pushhooks import PUSHED
from reconciler.commands.source import resolve
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord, PushRecords

OPERATOR = PushRecord("", {"username": "shard-admin", "groups": ["system:masters"]}, operator=True)


def test_what_a_directory_seeded_and_what_a_clone_brought_is_the_operators(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "treeplane.yaml").write_text(TREEPLANE_YAML)
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

"""What of the status branch is written to a tenant's repository: his workspace's own part, and nothing that is not for
him."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fleetrepo import FleetRepo

from reconciler.repository.difference import walk
from reconciler.repository.objects import Repository
from reconciler.statusbranch.excerpt import WorkspaceExcerpt
from reconciler.statusbranch.recorded import RecordedFleet

A = "workspaces/root/a"
SOURCE = "s" + "a" * 21
SERVED = "7" * 40
OWNERS = '[{"manager":"kubectl","operation":"Apply"}]'


def residue(kind: str, name: str, **more: Any) -> str:
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    return yaml.safe_dump({"apiVersion": "v1", "kind": kind, "metadata": metadata, **more})


def summary(**more: Any) -> str:
    return yaml.safe_dump({"origin": "1" * 40, "content": f"{SOURCE}.{SERVED}", **more})


class Recorded:
    """A status branch, and a repository where excerpts are made."""

    def __init__(self, folder: Path) -> None:
        self.status = FleetRepo(folder / "status.git")
        self.here = FleetRepo(folder / "here.git").repo

    def record(self, files: dict[str, str | None]) -> WorkspaceExcerpt:
        """Of root:a."""
        self.status.commit(files)
        found = WorkspaceExcerpt.of(RecordedFleet(self.status.repo, self.status.head), "root:a", A, SOURCE)
        assert found is not None
        return found

    def files(self, excerpt: WorkspaceExcerpt, before: tuple[str, str] | None = None) -> dict[str, Any]:
        tree = self.write(excerpt, before)
        return {path: yaml.safe_load(self.here.blob(entry.id)) for path, entry in walk(self.here, tree)}

    def write(self, excerpt: WorkspaceExcerpt, before: tuple[str, str] | None = None) -> str:
        return excerpt.write(self.status.repo, self.here, before)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def test_it_says_where_the_workspace_is_and_how_its_objects_are(recorded: Recorded) -> None:
    excerpt = recorded.record({
        f"{A}/_summary.yaml": summary(),
        f"{A}/_status/default/deployments.apps/web.yaml": residue(
            "Deployment", "web", metadata={"uid": "u", "generation": 3}, fieldOwners=OWNERS, status={"replicas": 2}
        ),
        f"{A}/_status/default/configmaps/c.yaml": residue("ConfigMap", "c", metadata={"uid": "u"}),
        f"{A}/_ending/default/services/s.yaml": residue(
            "Service", "s", metadata={"finalizers": ["a/b"], "deletionTimestamp": "t", "annotations": {"x": "y"}},
            spec={"clusterIP": "10.0.0.1"},
        ),
    })  # fmt: skip
    assert recorded.files(excerpt) == {
        "_summary.yaml": {"workspace": "root:a", "served": SERVED},
        "_status/default/deployments.apps/web.yaml": {
            "apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "status": {"replicas": 2},
        },
        "_ending/default/services/s.yaml": {
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "namespace": "default", "finalizers": ["a/b"], "deletionTimestamp": "t"},
        },
    }  # fmt: skip
    assert excerpt.message(recorded.status.repo) == (
        f"Status of root:a at {SERVED:.10}\n\nExcerpt-Of: root:a\nServed-Commit: {SERVED}\n"
    )


def test_what_holds_it_is_told(recorded: Recorded) -> None:
    held = {"served": "2" * 40, "held": "3" * 40, "errors": ["a.yaml:1: bad"], "waiting": ["APIBinding/w"]}
    excerpt = recorded.record({f"{A}/_summary.yaml": summary(**held)})
    said = {"workspace": "root:a", "served": SERVED, "held": True, "errors": held["errors"], "waiting": held["waiting"]}
    assert recorded.files(excerpt) == {"_summary.yaml": said}
    assert excerpt.message(recorded.status.repo).startswith(f"root:a is held at {SERVED:.10}\n")
    never = recorded.record({f"{A}/_summary.yaml": summary(served="", content="", errors=["x: nothing is here"])})
    assert recorded.files(never) == {
        "_summary.yaml": {"workspace": "root:a", "held": True, "errors": ["x: nothing is here"]}
    }
    assert never.message(recorded.status.repo) == "root:a is held\n\nExcerpt-Of: root:a\n"


def test_nothing_is_told_of_others_of_the_fleet_or_of_secrets(recorded: Recorded) -> None:
    told = {"status": {"told": "words"}}
    ours = {
        "claims": {"workspaces/root/words": "root:words"},
        "trespasses": [{"who": "words"}],
        "bindings": {"b": {"cluster": "words"}},
        "identities": {"e": "words"},
        "brought": {"labels": {"words": "words"}},
        "turned": {"Workspace": {"words": "t"}},
        "step": {"words": "x"},
        "before": "9" * 40,
    }
    excerpt = recorded.record({
        "fleet.yaml": "id: words\n",
        "schemas/1abc/words/u.yaml": "words: x\n",
        "workspaces/root/_summary.yaml": summary(errors=["words"]),
        "workspaces/root/b/_summary.yaml": summary(errors=["words"]),
        f"{A}/_summary.yaml": summary(**ours),
        f"{A}/below/_summary.yaml": summary(errors=["words"]),
        f"{A}/below/_status/default/pods/words.yaml": residue("Pod", "words", **told),
        f"{A}/_status/_/workspaces.tenancy.kcp.io/a.yaml": residue("Workspace", "a", **told),
        f"{A}/_status/default/secrets/words.yaml": residue("Secret", "words", **told),
        f"{A}/_status/_/synctargets.workload.kcp.io/words.yaml": residue("SyncTarget", "words", **told),
        f"{A}/_status/default/pods/p.yaml": residue(
            "Pod", "p", metadata={"annotations": {"words": "words"}}, fieldOwners="words", allocated={"words": 1},
            status={"phase": "Running"},
        ),
    })  # fmt: skip
    found = recorded.files(excerpt)
    assert set(found) == {"_summary.yaml", "_status/default/pods/p.yaml"}
    assert "words" not in str(found)
    assert "9" * 40 not in str(found) and "1" * 40 not in str(found), "ids of the fleet's commits"


def test_a_commit_of_another_repository_is_not_said_to_be_served(recorded: Recorded) -> None:
    """A source was swapped, and what is served is still the former's."""
    excerpt = recorded.record({f"{A}/_summary.yaml": summary(content=f"s{'b' * 21}.{SERVED}")})
    assert recorded.files(excerpt) == {"_summary.yaml": {"workspace": "root:a"}}


def test_what_changed_is_all_that_is_read(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = {f"{A}/_status/default/pods/{n}.yaml": residue("Pod", f"{n}", status={"n": n}) for n in range(50)}
    first = recorded.record({f"{A}/_summary.yaml": summary(), **pods})
    before = first.version, recorded.write(first)
    gone, other = f"{A}/_status/default/pods/7.yaml", f"{A}/_status/default/pods/8.yaml"
    second = recorded.record({gone: None, other: residue("Pod", "8", status={"n": 88})})
    assert second.version != first.version
    read = list[str]()
    blob = Repository.blob
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "blob", lambda self, found: read.append(found) or blob(self, found))
        tree = recorded.write(second, before)
    assert len(read) == 2, "the summary and a Pod"
    assert tree == recorded.write(second), "and it is as if all had been read"


def test_what_cannot_be_gone_on_from_is_made_anew(recorded: Recorded) -> None:
    pod = {f"{A}/_status/default/pods/p.yaml": residue("Pod", "p", status={"phase": "Running"})}
    excerpt = recorded.record({f"{A}/_summary.yaml": summary(), **pod})
    tree = recorded.write(excerpt)
    lost = excerpt._replace(folder=excerpt.folder._replace(status="e" * 40)).version
    other = excerpt._replace(workspace="root:moved").version
    for version in (lost, other, "", "1 root:a", "0 root:a x - - -"):
        assert recorded.write(excerpt, (version, tree)) == tree


def test_other_workspaces_change_nothing(recorded: Recorded) -> None:
    first = recorded.record({f"{A}/_summary.yaml": summary(), "workspaces/root/b/_summary.yaml": summary()})
    second = recorded.record(
        {"workspaces/root/b/_summary.yaml": summary(errors=["x"]), f"{A}/c/_summary.yaml": "a: b\n"}
    )
    assert first.version == second.version

"""What `treeplane log` tells of workspaces that come, move and go, of files that cannot be read, and of claims."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import ClickException
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.histories import blamed, logged, words
from support.loadedfleet import A, B, configmap

from reconciler.history import log as logging
from reconciler.history.result import FleetLog, WorkspaceStep

ROOT = "workspaces/root"
C = f"{ROOT}/c"
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
SAID = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
STATED = f"{SAID}metadata: {{uid: {UID}}}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: %s}\n"


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    app = {f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(), f"{A}/sub/workspace.yaml": ""}
    made.commit({"treeplane.yaml": TREEPLANE_YAML, f"{ROOT}/app.yaml": configmap(), **app}, "Begin")
    return made


def last(found: FleetLog) -> WorkspaceStep:
    [step] = found.entries[0].workspaces
    return step


def told(found: FleetLog) -> list[tuple[str, str]]:
    return [(step.path, str(step.change)) for entry in found.entries for step in entry.workspaces]


def moved(repo: FleetRepo, old: str, new: str, mark: str, **more: str) -> None:
    inside = {f: t for f, t in repo.files(repo.head).items() if f.startswith(f"{old}/")}
    files = {new + name[len(old) :]: text for name, text in inside.items()}
    repo.commit({old: None, **files, f"{new}/workspace.yaml": mark, **more}, "Move")


def test_objects_by_what_became_of_them(repo: FleetRepo) -> None:
    repo.commit({f"{A}/app.yaml": configmap(a="c"), f"{A}/more.yaml": configmap("more")})
    assert words(last(logged(repo))) == {"configured ConfigMap default/app", "created ConfigMap default/more"}
    repo.commit(
        {f"{A}/app.yaml": None, f"{A}/more.yaml": "# a remark\n" + configmap("more") + "---\n" + configmap(a="c")}
    )
    step = last(logged(repo))
    assert words(step) == {"moved ConfigMap default/app"}
    [app] = step.objects
    assert (app.file, app.moved_from) == (f"{A}/more.yaml", f"{A}/app.yaml")
    repo.commit({f"{A}/more.yaml": configmap(namespace="default", a="c")})
    assert words(last(logged(repo))) == {"configured ConfigMap default/app", "deleted ConfigMap default/more"}
    found = logged(repo, "root:a", "cm/more")
    assert [words(step) for entry in found.entries for step in entry.workspaces] == [
        {"deleted ConfigMap default/more"},
        {"created ConfigMap default/more"},
    ]


def test_what_changes_nothing_is_not_told(repo: FleetRepo) -> None:
    repo.commit({"README.md": "x", f"{A}/notes.txt": "x", f"{A}/app.yaml": "# a remark\n" + configmap()})
    assert len(logged(repo).entries) == 1
    assert len(logged(repo, "root:a").entries) == 1


def test_a_workspace_that_moves_is_followed_with_what_is_below_it(repo: FleetRepo) -> None:
    begun = repo.head
    moved(repo, A, C, STATED)
    assert told(logged(repo, f"{begun}..main")) == [("root:c", "moved"), ("root:c:sub", "moved")]
    assert told(logged(repo, "root:c")) == [("root:c", "moved"), ("root:a", "created")]
    assert told(logged(repo, "root:c:sub")) == [("root:c:sub", "moved"), ("root:a:sub", "created")]
    found = logged(repo, "root:a")
    assert told(found) == [("root:a", "moved"), ("root:a", "created")]
    assert last(found).moved_to == C
    # Back again, which states no UID.
    moved(repo, C, A, "")
    assert told(logged(repo, "root:a")) == [("root:a", "moved"), ("root:c", "moved"), ("root:a", "created")]


def test_of_alike_workspaces_the_uid_tells_which_moves(repo: FleetRepo) -> None:
    repo.commit({f"{B}/workspace.yaml": "", f"{B}/app.yaml": configmap(), f"{B}/sub/workspace.yaml": ""}, "Another")
    from apiserver.model.commits import own
    from apiserver.model.identity import object_uid
    from apiserver.model.keys import Key

    fleet, another = repo.commits
    uid = object_uid(fleet, Key("workspaces.tenancy.kcp.io", "root", "", "b"), own(another))
    files = {
        f"{C}/app.yaml": configmap(),
        f"{C}/sub/workspace.yaml": "",
        f"{C}/workspace.yaml": STATED.replace(UID, uid),
    }
    repo.commit({A: None, B: None, **files}, "Move one, delete the other")
    assert ("root:a", "deleted") in told(logged(repo))
    assert last(logged(repo, "root:c")).moved_from == B


def test_a_rename_that_states_no_uid_is_another_workspace(repo: FleetRepo) -> None:
    moved(repo, A, C, "")
    assert told(logged(repo, "root:c")) == [("root:c", "created")]
    assert told(logged(repo, "root:a")) == [("root:a", "deleted"), ("root:a", "created")]


def test_a_directory_that_groups_may_have_another_name(repo: FleetRepo) -> None:
    repo.commit({f"{ROOT}/one/x/workspace.yaml": "", f"{ROOT}/one/x/app.yaml": configmap()})
    repo.commit({f"{ROOT}/one": None, f"{ROOT}/two/x/workspace.yaml": "", f"{ROOT}/two/x/app.yaml": configmap()})
    assert last(logged(repo)).moved_from == f"{ROOT}/one/x"
    assert told(logged(repo, "root:x")) == [("root:x", "moved"), ("root:x", "created")]


def test_one_that_is_gone_is_told_by_its_name(repo: FleetRepo) -> None:
    repo.commit({A: None}, "Delete")
    assert told(logged(repo, "root:a")) == [("root:a", "deleted"), ("root:a", "created")]
    with pytest.raises(ClickException, match="no commit has a workspace root:aa") as nothing:
        logged(repo, "root:aa")
    assert nothing.value.exit_code == 1


def test_its_own_manifest(repo: FleetRepo) -> None:
    repo.commit({f"{A}/workspace.yaml": f"{SAID}metadata: {{labels: {{a: b}}}}\n"})
    assert words(last(logged(repo, "root:a"))) == {"configured Workspace a"}
    assert words(last(logged(repo, "workspace/a", "root:a"))) == {"configured Workspace a"}
    repo.commit({f"{A}/workspace.yaml": None}, "Leave its files behind")
    assert words(last(logged(repo, "root:a"))) == words(last(logged(repo))) == {"deleted Workspace a"}


def test_what_cannot_be_read_is_said_and_walked_past(repo: FleetRepo) -> None:
    repo.commit({f"{A}/app.yaml": SECRET % "[hunter2"}, "Break")
    broken = repo.head
    repo.commit({f"{A}/app.yaml": "x: {"}, "Break more")
    repo.commit({f"{A}/app.yaml": configmap(a="c"), f"{A}/more.yaml": configmap("more")}, "Mend")
    found = logged(repo)
    assert words(found.entries[0].workspaces[0]) == {
        "configured ConfigMap default/app",
        "created ConfigMap default/more",
    }
    assert found.entries[2].notes == (f"{A}/app.yaml:4 of {broken:.10} cannot be read, and is passed over",)
    assert "hunter2" not in str(found)
    repo.commit({f"{ROOT}": None}, "No fleet")
    assert logged(repo).entries[0].notes == (f"{repo.head:.10} cannot be read as a fleet, and is passed over",)
    repo.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="d")}, "A fleet again")
    assert logged(repo).entries


def test_of_a_secret_names_alone(repo: FleetRepo) -> None:
    repo.commit({f"{A}/s.yaml": SECRET % "hunter2"})
    repo.commit({f"{A}/s.yaml": SECRET % "hunter3"})
    assert words(last(logged(repo, "secret/s", "root:a"))) == {"configured Secret default/s"}
    assert "hunter" not in str(logged(repo)) + str(blamed(repo, "secret/s", workspace="root:a"))


def test_a_range_and_a_number_of_commits(repo: FleetRepo) -> None:
    for number in range(4):
        repo.commit({f"{A}/app.yaml": configmap(a=str(number))})
    _, one, two, *_ = repo.commits
    assert [entry.commit.id for entry in logged(repo, f"{one}..main").entries] == repo.commits[:1:-1]
    assert [entry.commit.id for entry in logged(repo, two).entries] == repo.commits[2::-1]
    found = logged(repo, most=2)
    assert ([entry.commit.id for entry in found.entries], found.more) == (repo.commits[:-3:-1], True)
    assert not logged(repo, "main..main").entries
    assert not logged(repo, most=5).more


def test_what_was_merged_comes_with_the_merge(repo: FleetRepo) -> None:
    begun = repo.head
    side = repo.commit({f"{A}/app.yaml": configmap(a="side")})
    repo.reset(begun)
    repo.commit({f"{ROOT}/more.yaml": configmap("more")})
    merge = repo.merge({f"{A}/app.yaml": configmap(a="side")}, side)
    found = logged(repo, "root:a")
    assert [entry.commit.id for entry in found.entries] == [merge, begun]


def test_a_first_commit_is_not_read_whole(repo: FleetRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "MOST_WORKSPACES", 2)
    [entry] = logged(repo).entries
    assert (len(entry.workspaces), entry.more) == (2, True)
    repo.commit({f"{place}/x.yaml": configmap("x") for place in (ROOT, A, f"{A}/sub")})
    assert (len(logged(repo).entries[0].workspaces), logged(repo).entries[0].more) == (2, True)


def test_who_wrote_what_of_a_commit_of_several(repo: FleetRepo) -> None:
    trailers = "Written-By: root:a configmaps default/app bob\nWritten-By: root:a widgets.example.io w carol\n"
    lie = "Written-By: root:a configmaps default/other eve\nWritten-By: root:b configmaps default/app eve\n"
    widget = json.dumps({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "w"}})
    files = {f"{A}/app.yaml": configmap(a="c"), f"{A}/w.json": widget}
    repo.commit(files, f"Write 2 objects\n\n{trailers}{lie}")
    found = logged(repo).entries[0]
    writers = {each.object.name: each.writer for each in found.workspaces[0].objects}
    assert {name: (each.user, each.known) for name, each in writers.items() if each} == {
        "app": ("bob", False),
        "w": ("carol", False),
    }
    assert found.notes == ("eve is said to have written configmaps default/other, which it does not change",)

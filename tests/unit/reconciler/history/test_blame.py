"""What `treeplane blame` tells of lists, of Secrets, of moves and of what it is not asked well."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click import ClickException
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.histories import blamed, set_by
from support.loadedfleet import A, configmap

from reconciler.review.fields import HIDDEN

ROOT = "workspaces/root"
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - {name: web, image: "web:1", args: [a, b], ports: [{containerPort: 80}]}
      - {name: side, image: "side:1"}
"""


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    made.commit({"treeplane.yaml": TREEPLANE_YAML, f"{A}/workspace.yaml": "", f"{A}/web.yaml": DEPLOYMENT}, "Begin")
    return made


def test_items_of_a_list_are_told_apart_as_their_schema_does(repo: FleetRepo) -> None:
    begun = repo.head
    first = '      - {name: first, image: "first:1"}\n'
    text = DEPLOYMENT.replace("containers:\n", f"containers:\n{first}").replace("web:1", "web:2")
    later = repo.commit({f"{A}/web.yaml": text.replace("containerPort: 80", "containerPort: 80, protocol: TCP")})
    found, at = set_by(blamed(repo, "deploy/web", workspace="root:a")), "spec.template.spec.containers"
    assert found[f"{at}[name=first].image"] == found[f"{at}[name=web].image"] == later
    assert found[f"{at}[name=side].image"] == found[f"{at}[name=web].args[1]"] == begun
    port = f"{at}[name=web].ports[containerPort=80,protocol=TCP]"
    assert (found[f"{port}.containerPort"], found[f"{port}.protocol"]) == (begun, later)


def test_items_of_an_unknown_kind_by_what_they_are_called_or_their_place(repo: FleetRepo) -> None:
    def thing(items: list[object]) -> str:
        value = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "items": items}
        return json.dumps(value, indent=1)

    one = repo.commit({f"{A}/t.json": thing([{"name": "x", "v": 1}, {"name": "y", "v": 1}])})
    two = repo.commit({f"{A}/t.json": thing([{"name": "y", "v": 1}, {"name": "x", "v": 2}])})
    found = set_by(blamed(repo, "thing/t", workspace="root:a"))
    assert (found["items[name=y].v"], found["items[name=x].v"]) == (one, two)
    three = repo.commit({f"{A}/t.json": thing(["b", "a"])})
    four = repo.commit({f"{A}/t.json": thing(["b", "c", "a"])})
    found = set_by(blamed(repo, "things.example.io/t", workspace="root:a"))
    assert [found[f"items[{number}]"] for number in range(3)] == [three, four, four]


def test_an_empty_map_a_type_that_changes_and_a_field_that_comes_again(repo: FleetRepo) -> None:
    for data in ("{a: '1', b: {}}", "{b: x}", "{a: '1', b: {}}"):
        text = f"apiVersion: example.io/v1\nkind: Thing\nmetadata: {{name: t}}\ndata: {data}\n"
        repo.commit({f"{A}/t.yaml": text})
    found = set_by(blamed(repo, "thing/t", workspace="root:a"))
    assert found["data.a"] == found["data.b"] == repo.head
    assert found["metadata.name"] == repo.commits[1]


def test_an_object_that_was_away_is_another_one(repo: FleetRepo) -> None:
    repo.commit({f"{A}/web.yaml": None})
    repo.commit({f"{A}/web.yaml": DEPLOYMENT})
    assert {*set_by(blamed(repo, "deploy/web", workspace="root:a")).values()} == {repo.head}


def test_as_of_another_commit(repo: FleetRepo) -> None:
    begun = repo.head
    repo.commit({f"{A}/web.yaml": DEPLOYMENT.replace("web:1", "web:2")})
    found = blamed(repo, "deploy/web", begun, workspace="root:a")
    assert {*set_by(found).values()} == {begun} == {found.commit}
    with pytest.raises(ClickException, match="is a range"):
        blamed(repo, "deploy/web", f"{begun}..main", workspace="root:a")


def test_of_a_secret_the_keys_alone(repo: FleetRepo) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {note: hunter1}}\n%s: {password: %s}\n"
    repo.commit({f"{A}/s.yaml": text % ("stringData", "hunter2")})
    repo.commit({f"{A}/s.yaml": text % ("stringData", "hunter3")})
    found = blamed(repo, "secret/s", workspace="root:a")
    values = {each.field: each.value for each in found.fields}
    assert values["stringData.password"] is HIDDEN
    assert values["metadata.annotations.note"] is HIDDEN
    assert values["metadata.name"] == "s"
    assert set_by(found)["stringData.password"] == repo.head


def test_a_workspace_is_its_parents_object(repo: FleetRepo) -> None:
    said = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata:\n  labels:\n    a: %s\n"
    repo.commit({f"{A}/workspace.yaml": said % "b"})
    repo.commit({f"{A}/workspace.yaml": "x: {"})
    made = repo.commit({f"{A}/workspace.yaml": said % "c"})
    found = blamed(repo, "workspace/a", workspace="root")
    [label] = [each for each in found.fields if each.field == "metadata.labels.a"]
    assert (found.commits[label.commit][0].id, label.file, label.line) == (made, f"{A}/workspace.yaml", 5)
    assert found.object.workspace == "root"
    assert len(found.notes) == 1


def test_what_is_not_there_names_what_is_near(repo: FleetRepo) -> None:
    for asked, workspace, text, near, code in (
        (("deploy/webb",), "root:a", "no file of root:a declares deploy/webb", "near it: web", 1),
        (("cm/web",), "root:a", "no file of root:a declares cm/web", "", 1),
        (("deploy/web",), "root:aa", "there is no workspace root:aa", "near it: root:a", 1),
        (("workspace/aa",), "root", "there is no workspace root:aa", "near it: root:a", 1),
        (("deploy",), "root:a", "of which object?", "like deployment/web", 2),
        (("deploy/web", "nothing"), "root:a", "nothing names no commit here", "git fetch", 2),
        (("deploy/web", "cm/x"), "root:a", "are both given", "name one", 2),
        (("deploy/\x1b[2Jx",), "root:a", r"deploy/\x1b[2Jx", "", 1),
    ):
        with pytest.raises(ClickException) as found:
            blamed(repo, *asked, workspace=workspace)
        assert text in found.value.message
        assert near in found.value.message
        assert found.value.exit_code == code


def test_two_of_a_name(repo: FleetRepo) -> None:
    repo.commit({f"{A}/app.yaml": configmap() + "---\n" + configmap(namespace="other")})
    with pytest.raises(ClickException, match="cm/app is several objects of root:a: ConfigMap default/app") as found:
        blamed(repo, "cm/app", workspace="root:a")
    assert "give -n" in found.value.message

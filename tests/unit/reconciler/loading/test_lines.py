"""Where in a file an object stands is no part of it: a line inserted above an object changes nothing."""

from __future__ import annotations

import pytest
from support.loadedfleet import A, LoadedFleet, configmap
from support.widgets import binding, export, schema

from apiserver.model.tables import Table
from apiserver.storage.protocol import Row
from reconciler.repository.mirror import STATUS_REF

APP = f"{A}/app.yaml"
ONE, TWO = configmap("one"), configmap("two")
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata: {labels: {a: b}}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: target}\nstringData: {a: b}\n"


def rows(fleet: LoadedFleet) -> list[Row]:
    return fleet.store.scan_rows(Table.WORKSPACES)


@pytest.mark.parametrize(
    ("path", "text", "moved"),
    [
        (APP, f"{ONE}---\n{TWO}", f"# a line\n{ONE}---\n{TWO}"),
        (APP, f"{ONE}---\n{TWO}", f"{ONE}---\n# a line\n\n{TWO}"),
        (APP, f"{ONE}---\n{CRD}", f"{ONE}---\n# a line\n{CRD}"),
        (APP, f"{ONE}---\n{binding('root:b')}", f"{ONE}---\n# a line\n{binding('root:b')}"),
        (f"{A}/workspace.yaml", WORKSPACE, f"# a line\n{WORKSPACE}"),
    ],
    ids=["above both", "between", "a definition", "a binding", "workspace.yaml"],
)
def test_a_line_above_changes_no_object_and_nothing_that_is_recorded(
    fleet: LoadedFleet, path: str, text: str, moved: str
) -> None:
    fleet.commit({"workspaces/root/b/schema.json": schema("a1"), "workspaces/root/b/export.json": export("a1")})
    fleet.commit({path: text})
    assert fleet.held() == {}
    status, before, objects = fleet.publish(), rows(fleet), fleet.everything()
    revision = fleet.store.revision()
    fleet.commit({path: moved})
    fleet.recheck()
    assert (fleet.store.revision(), fleet.everything()) == (revision, objects)
    assert rows(fleet) == before
    assert fleet.publish() == status == fleet.mirror.repository.ref(STATUS_REF)


def test_of_a_workspace_that_is_held_only_the_words_change_that_name_the_line(fleet: LoadedFleet) -> None:
    bad = "apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n"
    fleet.commit({APP: f"{ONE}---\n{bad}"})
    [error] = fleet.held()["root:a"]
    fleet.commit({APP: f"# a line\n{ONE}---\n{bad}"})
    [moved] = fleet.held()["root:a"]
    assert (error.split(":")[1], moved.split(":")[1]) == ("7", "8")
    assert fleet.written() == ["~logicalclusters.core.kcp.io/root:a//cluster", "~workspaces.tenancy.kcp.io/root//a"]


def test_a_line_above_a_kept_secret_has_nobody_judged(fleet: LoadedFleet) -> None:
    fleet.keep_secret("root:a", SECRET)
    file = fleet.keys / "secrets" / "root:a" / "target.yaml"
    new = file.with_suffix(".new")
    new.write_text(f"# a line\n{SECRET}")
    new.rename(file)
    assert fleet.secrets.changed() == set()
    assert fleet.secrets.not_served(fleet.store) == set()

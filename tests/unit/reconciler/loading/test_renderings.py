"""Directories that are rendered: what is served of them, what touches their workspaces, and what becomes of a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_same, recover

from reconciler.loading import feeds
from reconciler.rendering.rendering import NOWHERE

APP = f"{A}/app-kustomized"
MARKER = f"{APP}/kustomization.yaml"


def sharing(*directories: str) -> str:
    """treeplane.yaml that shares directories."""
    rules = "".join(f"    - {each}\n" for each in directories)
    return f"{TREEPLANE_YAML}spec:\n  rendering:\n    shared:\n{rules}"


def kustomization(*resources: str, prefix: str = "k-") -> str:
    return f"namePrefix: {prefix}\nresources: [{', '.join(resources)}]\n"


@pytest.fixture
def renders() -> FakeRenders:
    return FakeRenders()


@pytest.fixture
def empty(tmp_path: Path, renders: FakeRenders) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet", renders=renders)
    yield made
    made.close()


@pytest.fixture
def made(fleet: LoadedFleet) -> LoadedFleet:
    """root:a has one ConfigMap of its own, and one that is rendered."""
    fleet.commit({MARKER: kustomization("x.yaml"), f"{APP}/x.yaml": configmap("x", v="1")})
    assert fleet.held() == {}
    return fleet


def names(fleet: LoadedFleet, path: str = "root:a") -> set[str]:
    found = fleet.store.scan("configmaps", fleet.record(path).cluster, "default").records
    return {record.key.name for record in found} - {"kube-root-ca.crt"}


def test_what_comes_of_it_is_served_and_nothing_below_is_read(made: LoadedFleet) -> None:
    assert made.written() == ["+configmaps/root:a/default/k-x"]
    assert names(made) == {"app", "k-x"}
    annotations = made.get("root:a", "configmaps", "k-x")["metadata"]["annotations"]
    assert annotations["treeplane.dev/source-path"] == MARKER
    assert "treeplane.dev/origin" not in annotations
    made.commit({f"{APP}/broken.yaml": "kind: [", f"{APP}/y.yaml": configmap("y")})
    assert made.held() == {}
    assert made.written() == []


def test_a_change_below_changes_what_differs(made: LoadedFleet) -> None:
    made.commit({f"{APP}/x.yaml": configmap("x", v="2")})
    assert made.written() == ["~configmaps/root:a/default/k-x"]
    made.commit({MARKER: kustomization("x.yaml", prefix="n-")})
    assert made.written() == ["+configmaps/root:a/default/n-x", "-configmaps/root:a/default/k-x"]
    made.commit({MARKER: kustomization("x.yaml", prefix="n-"), f"{APP}/README.md": "hello"})
    assert made.written() == []


def test_an_overlay_of_a_base_that_is_ignored(fleet: LoadedFleet, renders: FakeRenders) -> None:
    fleet.commit(
        {
            f"{A}/.treeplaneignore": "base/\n",
            f"{A}/base/kustomization.yaml": kustomization("x.yaml", prefix="b-"),
            f"{A}/base/x.yaml": configmap("x", v="1"),
            f"{A}/base/notes.txt": "",
            f"{A}/prod/kustomization.yaml": kustomization("../base", prefix="p-"),
        }
    )
    assert fleet.held() == {}
    assert names(fleet) == {"app", "p-b-x"}
    assert renders.seen[f"{A}/prod"] == sorted(
        [
            *(f"{A}/base/{name}" for name in ("kustomization.yaml", "notes.txt", "x.yaml")),
            f"{A}/prod/kustomization.yaml",
        ]
    )
    fleet.commit({f"{A}/base/x.yaml": configmap("x", v="2")})
    assert fleet.written() == ["~configmaps/root:a/default/p-b-x"]


def test_a_shared_directory_costs_those_alone_that_it_feeds(fleet: LoadedFleet, renders: FakeRenders) -> None:
    fleet.commit(
        {
            "treeplane.yaml": sharing("bases", "other"),
            "bases/web/kustomization.yaml": kustomization("x.yaml", prefix=""),
            "bases/web/x.yaml": configmap("x", v="1"),
            "bases/db/kustomization.yaml": kustomization("y.yaml", prefix=""),
            "bases/db/y.yaml": configmap("y"),
            MARKER: kustomization("../../../../bases/web"),
            f"{B}/k/kustomization.yaml": kustomization("../../../../bases/db"),
        }
    )
    assert fleet.held() == {}
    assert names(fleet) == {"app", "k-x"}
    renders.asked.clear()
    fleet.commit({"bases/web/x.yaml": configmap("x", v="2")})
    assert fleet.written() == ["~configmaps/root:a/default/k-x"]
    assert renders.asked == [APP]
    fleet.commit({"bases/README.md": "", "other/x": ""})
    assert fleet.written() == []
    assert renders.asked == [APP]


def test_shared_directories_name_each_other(fleet: LoadedFleet) -> None:
    fleet.commit(
        {
            "treeplane.yaml": sharing("bases", "parts"),
            "parts/p/kustomization.yaml": kustomization("x.yaml", prefix=""),
            "parts/p/x.yaml": configmap("x", v="1"),
            "bases/web/kustomization.yaml": kustomization("../../parts/p", prefix=""),
            MARKER: kustomization("../../../../bases/web"),
        }
    )
    assert names(fleet) == {"app", "k-x"}
    fleet.commit({"parts/p/x.yaml": configmap("x", v="2")})
    assert fleet.written() == ["~configmaps/root:a/default/k-x"]


def test_what_is_shared_later_mends_who_named_it(fleet: LoadedFleet) -> None:
    base = {"bases/web/kustomization.yaml": kustomization("x.yaml"), "bases/web/x.yaml": configmap("x")}
    fleet.commit({**base, MARKER: kustomization("../../../../bases/web")})
    [error] = fleet.held()["root:a"]
    assert error.startswith(f"{MARKER}: cannot be rendered: ")
    assert "it names bases/web, which is not this workspace's" in error
    fleet.commit({"treeplane.yaml": sharing("bases")})
    assert fleet.held() == {}
    assert "k-k-x" in names(fleet)
    fleet.commit({"treeplane.yaml": TREEPLANE_YAML})
    assert "bases/web" in fleet.held()["root:a"][0]
    assert "k-k-x" in names(fleet)


def test_what_comes_to_stand_where_a_kustomization_looks_mends_it(fleet: LoadedFleet) -> None:
    fleet.commit({"treeplane.yaml": sharing("bases"), MARKER: kustomization("../../../../bases/web")})
    assert "no such file or directory" in fleet.held()["root:a"][0]
    fleet.commit({"bases/web/kustomization.yaml": kustomization("x.yaml"), "bases/web/x.yaml": configmap("x")})
    assert fleet.held() == {}


def test_another_workspaces_files_are_not_seen(fleet: LoadedFleet, renders: FakeRenders) -> None:
    child = f"{A}/child"
    fleet.commit(
        {
            f"{child}/workspace.yaml": "",
            f"{child}/secret.txt": "theirs",
            f"{child}/base/kustomization.yaml": kustomization("x.yaml"),
            f"{child}/base/x.yaml": configmap("x"),
            MARKER: kustomization("x.yaml", "../../b", "../child/base", ".."),
            f"{APP}/x.yaml": configmap("x"),
        }
    )
    assert "../../b: no such file" in fleet.held()["root:a"][0]
    assert f"it names {A}/child/base, {B}, which is not this workspace's" in fleet.held()["root:a"][0]
    assert not any(path.startswith((child, B)) or "workspace.yaml" in path for path in renders.seen[APP])
    assert f"{A}/app.yaml" in renders.seen[APP]


def test_a_workspace_below_holds_who_renders_and_goes_on_itself(made: LoadedFleet, renders: FakeRenders) -> None:
    asked = len(renders.asked)
    made.commit({f"{APP}/web/workspace.yaml": "", f"{APP}/web/own.yaml": configmap("own")})
    [error] = made.held()["root:a"]
    assert error.startswith(f"{MARKER}: renders {APP}, and the workspace root:a:web stands in {APP}/web")
    assert names(made) == {"app", "k-x"}
    assert names(made, "root:a:web") == {"own"}
    made.commit({f"{APP}/web/own.yaml": configmap("own", v="2"), f"{APP}/x.yaml": configmap("x", v="2")})
    assert made.data("root:a:web", "own") == {"v": "2"}
    assert made.data("root:a", "k-x") == {"v": "1"}
    assert len(renders.asked) == asked
    made.delete({f"{APP}/web": None})
    assert made.held() == {}
    assert made.data("root:a", "k-x") == {"v": "2"}


def test_a_workspace_itself_is_rendered(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/kustomization.yaml": kustomization("app.yaml")})
    assert "objects would be deleted" not in str(fleet.held())
    assert names(fleet) == {"k-app"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("kind: [", "cannot be rendered"),
        ("raw: 'kind: ['", "what comes of it is no manifest: "),
        ("raw: 'hello'", "what comes of it is no manifest: an object is a mapping"),
        (
            'raw: "kind: ConfigMap\\nmetadata: {name: x}"',
            "what comes of it is no manifest: ConfigMap x: apiVersion is missing",
        ),
        ("raw: ''", "nothing comes of it; nothing is deleted for that"),
        ("raw: '# only this'", "no object comes of it; nothing is deleted for that"),
        ("resources: []", "nothing comes of it; nothing is deleted for that"),
    ],
)
def test_a_fault_holds_its_workspace_alone_and_deletes_nothing(made: LoadedFleet, said: str, told: str) -> None:
    made.commit({MARKER: said, f"{B}/app.yaml": configmap(a="c")})
    [error] = made.held()["root:a"]
    assert error.startswith(f"{MARKER}: ")
    assert told in error
    assert names(made) == {"app", "k-x"}
    assert made.data("root:b") == {"a": "c"}
    made.commit({MARKER: kustomization("x.yaml")})
    assert made.held() == {}
    assert [line for line in made.written() if "configmaps" in line] == []


def test_without_a_program_what_is_served_stays(made: LoadedFleet, renders: FakeRenders) -> None:
    renders.away = True
    made.commit({f"{APP}/x.yaml": configmap("x", v="2"), f"{B}/app.yaml": configmap(a="c")})
    assert "there is no program here (put one here)" in made.held()["root:a"][0]
    assert made.data("root:a", "k-x") == {"v": "1"}
    assert made.data("root:b") == {"a": "c"}
    assert feeds.late(made.store) == {"root:a"}
    renders.away = False
    made.recheck(feeds.late(made.store))
    assert made.held() == {}
    assert made.data("root:a", "k-x") == {"v": "2"}
    assert feeds.late(made.store) == set()


def test_a_file_that_is_dropped_while_there_is_no_program_goes_once_there_is(
    made: LoadedFleet, renders: FakeRenders
) -> None:
    renders.away = True
    made.commit({MARKER: kustomization("y.yaml"), f"{APP}/y.yaml": configmap("y"), f"{APP}/x.yaml": None})
    made.commit({MARKER: kustomization("y.yaml", prefix="z-")})
    assert names(made) == {"app", "k-x"}
    renders.away = False
    made.recheck(feeds.late(made.store))
    assert names(made) == {"app", "z-y"}


def test_a_rendered_directory_that_goes_takes_what_was_made_of_it(made: LoadedFleet, renders: FakeRenders) -> None:
    renders.away = True
    made.commit({APP: None})
    assert made.held() == {}
    assert names(made) == {"app"}
    assert feeds.noted(made.store, made.record("root:a").cluster) is None


def test_a_workspace_that_goes_while_there_is_no_program_is_asked_about(
    made: LoadedFleet, renders: FakeRenders
) -> None:
    made.commit({f"{A}/app.yaml": None, f"{A}/workspace.yaml": "# nothing more"})
    assert made.held() == {}
    assert names(made) == {"k-x"}
    renders.away = True
    made.commit({A: None})
    assert "it has manifests" in made.held()["root:a"][0]
    made.allow()
    assert "root:a" not in made.paths()


def test_another_version_of_the_program_is_judged_at_a_start(made: LoadedFleet, renders: FakeRenders) -> None:
    assert feeds.others_by(made.store, renders.fingerprint) == set()
    renders.stamp = "2"
    assert feeds.others_by(made.store, renders.fingerprint) == {"root:a"}
    made.loader = made.new_loader()
    made.recheck(feeds.others_by(made.store, renders.fingerprint))
    assert names(made) == {"app", "k-x", "version-2"}
    assert made.get("root:a", "configmaps", "k-x")["metadata"]["labels"] == {"stamp": "2"}
    renders.stamp = "3"
    made.loader = made.new_loader()
    made.recheck(feeds.others_by(made.store, renders.fingerprint))
    assert names(made) == {"app", "k-x", "version-3"}
    assert feeds.others_by(made.store, renders.fingerprint) == set()


def test_a_commit_that_comes_first_after_another_version(made: LoadedFleet, renders: FakeRenders) -> None:
    renders.stamp = "2"
    made.commit({f"{APP}/y": "", f"{A}/app.yaml": configmap(a="c")})
    assert names(made) == {"app", "k-x", "version-2"}
    renders.stamp = "1"
    made.loader = made.new_loader()
    made.commit({f"{A}/app.yaml": configmap(a="d")})
    assert names(made) == {"app", "k-x"}


def test_a_recovery_finds_the_same(made: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    made.commit(
        {
            "treeplane.yaml": sharing("bases"),
            "bases/web/kustomization.yaml": kustomization("x.yaml", prefix="s-"),
            "bases/web/x.yaml": configmap("x", v="1"),
            f"{B}/k/kustomization.yaml": kustomization("../../../../bases/web"),
        }
    )
    made.publish()
    again = recover(made, another)
    assert_same(again, made)
    for fleet in (made, again):
        rows = {record.path: feeds.noted(fleet.store, record.cluster) for record in fleet.records()}
        assert rows["root:b"] == feeds.Fed("1", ("bases/web",))
        assert rows["root:a"] == feeds.Fed("1")
        assert rows["root"] is None
    again.commit({"bases/web/x.yaml": configmap("x", v="2")})
    assert again.data("root:b", "k-s-x") == {"v": "2"}


def test_a_recovery_without_the_program_serves_the_rest(
    made: LoadedFleet, another: Callable[..., LoadedFleet], renders: FakeRenders
) -> None:
    made.publish()
    renders.away = True
    again = recover(made, another)
    assert "cannot be brought back" in again.held()["root:a"][0]
    assert names(again, "root:b") == {"app"}
    renders.away = False
    again.recheck(feeds.late(again.store))
    assert again.held() == {}
    for resource, name in (("configmaps", "k-x"), ("configmaps", "app")):
        assert (
            again.get("root:a", resource, name)["metadata"]["uid"]
            == made.get("root:a", resource, name)["metadata"]["uid"]
        )


def test_nowhere_says_so(empty: LoadedFleet) -> None:
    empty.renders = NOWHERE
    empty.loader = empty.new_loader()
    empty.begin({MARKER: kustomization("x.yaml"), f"{APP}/x.yaml": configmap("x")})
    assert f"{MARKER}: cannot be rendered: kustomize is not run here" in empty.held()["root:a"][0]


def test_more_than_so_many_are_too_many(fleet: LoadedFleet) -> None:
    files: dict[str, str | None] = {}
    for number in range(33):
        files[f"{A}/k{number:02}/kustomization.yaml"] = kustomization("x.yaml", prefix=f"k{number}-")
        files[f"{A}/k{number:02}/x.yaml"] = configmap("x")
    fleet.commit(files)
    [error] = fleet.held()["root:a"]
    assert error.startswith(f"{A}/k32/kustomization.yaml: a workspace has at most 32 directories that are rendered")
    fleet.commit({f"{A}/k00": None})
    assert fleet.held() == {}
    assert len(names(fleet)) == 33

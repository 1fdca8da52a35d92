"""Which directory becomes which workspace, what each gets, and what is left out and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from support.adoptable import (
    ARGO,
    FLUX,
    OVERLAYS,
    PLAIN,
    application,
    configmap,
    definition,
    deployment,
    flux,
    kustomization,
)

from reconciler.commands.adopting.lookedat import LookedAt
from reconciler.commands.adopting.planning import AdoptionPlan, plan
from reconciler.layout.yamldoc import LIMIT


def planned(files: Mapping[str, str | bytes], top: str = "mine") -> AdoptionPlan:
    found = LookedAt({path: text.encode() if isinstance(text, str) else text for path, text in files.items()})
    for path in files:
        found.directories.update(str(each) if str(each) != "." else "" for each in Path(path).parents)
    return plan(found, top)


def workspaces(found: AdoptionPlan) -> dict[str, str]:
    return {each.path: each.directory for each in found.workspaces}


def left(found: AdoptionPlan) -> dict[str, str]:
    return {each.path: each.reason for each in found.left}


def missed(found: AdoptionPlan) -> list[str]:
    return [each.path for each in found.left if each.missed]


def test_each_directory_at_the_top_is_a_workspace() -> None:
    found = planned(PLAIN)
    assert workspaces(found) == {"root:media": "media", "root:shop": "shop"}
    assert found.copied == {
        "workspaces/root/media/player.yaml": "media/player.yaml",
        "workspaces/root/shop/jobs/settings.yaml": "shop/jobs/settings.yaml",
        "workspaces/root/shop/web.yaml": "shop/web.yaml",
    }
    [shop] = [each for each in found.workspaces if each.name == "shop"]
    assert (shop.exports, shop.namespaces) == (["kubernetes"], ["shop"])
    assert yaml.safe_load(found.made["workspaces/root/shop/namespaces.yaml"])["metadata"] == {"name": "shop"}
    assert "workspaces/root/media/namespaces.yaml" not in found.made
    assert "values of a Helm chart" in left(found)["media/values.yaml"]
    assert "compose file" in left(found)["media/docker-compose.yml"]
    assert left(found)["README.md"] == "no manifest by its name"
    assert missed(found) == []


def test_a_flat_directory_is_one_workspace() -> None:
    found = planned({"a.yaml": configmap("a"), "b.json": '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}'})
    assert workspaces(found) == {"root:mine": ""}
    assert sorted(found.copied) == ["workspaces/root/mine/a.yaml", "workspaces/root/mine/b.json"]


def test_a_repository_for_flux() -> None:
    found = planned(FLUX)
    assert workspaces(found) == {
        "root:apps-production": "apps/production",
        "root:apps-staging": "apps/staging",
        "root:infrastructure": "infrastructure",
    }
    wrapper = yaml.safe_load(found.made["workspaces/root/apps-staging/staging/kustomization.yaml"])
    assert wrapper["resources"] == ["../../../../shared/apps/staging"]
    assert found.copied["shared/apps/base/web/web.yaml"] == "apps/base/web/web.yaml"
    assert yaml.safe_load(found.made["treeplane.yaml"])["spec"]["rendering"] == {"shared": ["shared"]}
    [staging] = [each for each in found.workspaces if each.name == "apps-staging"]
    assert (staging.exports, staging.namespaces) == (["kubernetes"], ["web"])
    assert left(found)["apps/unused/unused.yaml"] == "no Flux Kustomization or Argo CD Application names its directory"
    assert "into infra" in left(found)["clusters/staging/infra.yaml"]


def test_flux_itself_is_not_taken() -> None:
    reasons = left(planned(FLUX))
    names = ("gotk-components.yaml", "gotk-sync.yaml", "kustomization.yaml")
    assert all("Flux" in reasons[f"clusters/staging/flux-system/{name}"] for name in names)
    assert missed(planned(FLUX)) == []


def test_a_repository_for_argo() -> None:
    found = planned(ARGO)
    assert workspaces(found) == {
        "root:apps-web": "apps/web", "root:teams-blue-team": "teams/Blue_Team", "root:teams-red": "teams/red"
    }  # fmt: skip
    assert [each.name for each in found.workspaces if each.fitted] == ["teams-blue-team"]
    assert "into shop" in left(found)["argocd/web.yaml"]
    assert "Application names" in left(found)["teams/old/old.yaml"]


@pytest.mark.parametrize("path", ["../../etc", "/etc", "nowhere", "''", "[a]", "'a\\0'"])
def test_a_path_that_is_no_directory_there_names_none(path: str) -> None:
    found = planned({"app.yaml": application("a", path), "web/a.yaml": configmap("a")})
    assert workspaces(found) == {"root:web": "web"}


def test_what_comes_to_clusters_from_elsewhere_is_missed() -> None:
    release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: cache}\n"
    found = planned({"a/a.yaml": configmap("a"), "a/release.yaml": release, "x/app.yaml": application("x", "nowhere"),
                     "x/sync.yaml": flux("sync", "./a")})  # fmt: skip
    reasons = left(found)
    assert "commit the chart of a HelmRelease" in reasons["a/release.yaml"]
    assert "Application x names no directory that is here" in reasons["x/app.yaml"]
    assert missed(found) == ["a/release.yaml", "x/app.yaml"]


def test_each_overlay_is_a_workspace_and_a_base_is_none() -> None:
    found = planned(OVERLAYS)
    assert workspaces(found) == {
        "root:other": "other", "root:overlays-a": "overlays/a", "root:overlays-b": "overlays/b"
    }  # fmt: skip
    assert [to for to, path in found.copied.items() if path == "base/web.yaml"] == ["shared/base/web.yaml"]


def test_what_is_whole_in_itself_is_rendered_where_it_stands() -> None:
    found = planned({"web/app/kustomization.yaml": kustomization("a.yaml"), "web/app/a.yaml": deployment("a"),
                     "web/app/notes.txt": "x", "web/b.yaml": configmap("b")})  # fmt: skip
    assert found.copied["workspaces/root/web/app/notes.txt"] == "web/app/notes.txt"
    assert [each.rendered for each in found.workspaces] == [["web/app"]]
    assert b"shared" not in found.made["treeplane.yaml"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (kustomization("https://git.example/base?ref=v1"), "fetch"),
        (kustomization("../none"), "not in the directory"),
        (kustomization("../../../../etc"), "not in the directory"),
        (kustomization(more="helmCharts: [{name: a}]\n"), "fetched"),
        (kustomization("release.yaml"), "HelmRelease a is told to Flux"),
        (kustomization("widget.yaml"), "no kind Widget"),
        (kustomization("sealed.yaml"), "encrypted"),
        ("{", "kustomization.yaml"),
    ],
)
def test_a_kustomization_that_would_not_render_is_left_out(said: str, why: str) -> None:
    found = planned({
        "web/app/kustomization.yaml": said,
        "web/app/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a}\n"
        "---\n" + configmap("b"),
        "web/app/widget.yaml": "apiVersion: lab.example/v1\nkind: Widget\nmetadata: {name: a}\n",
        "web/app/sealed.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 'ENC[AES256_GCM,data]'}\n",
        "web/a.yaml": configmap("a"),
    })  # fmt: skip
    assert why in left(found)["web/app/kustomization.yaml"]
    assert "web/app/kustomization.yaml" in missed(found)
    assert list(found.copied.values()) == ["web/a.yaml"]


def test_charts() -> None:
    found = planned({
        "web/cache/Chart.yaml": "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
        "web/cache/values.yaml": "a: b\n",
        "web/cache/templates/_helpers.tpl": "{{- define \"a\" }}{{ end }}",
        "web/cache/templates/a.yaml": "kind: {{ .Values.kind }}\n",
        "web/queue/Chart.yaml": "apiVersion: v2\nname: queue\ndependencies: [{name: common}]\n",
        "web/queue/templates/a.yaml": "a",
        "loose.yaml": "a: {{ .Values.b }}\n",
    })  # fmt: skip
    assert [(each.path, each.rendered, each.exports) for each in found.workspaces] == [
        ("root:web", ["web/cache"], ["kubernetes"])
    ]
    assert found.copied["workspaces/root/web/cache/templates/_helpers.tpl"] == "web/cache/templates/_helpers.tpl"
    assert "helm dependency build" in left(found)["web/queue/Chart.yaml"]
    assert "template of a Helm chart" in left(found)["loose.yaml"]


def test_a_kind_is_there_by_a_definition_of_the_same_workspace() -> None:
    widget = "apiVersion: lab.example/v1\nkind: Widget\nmetadata: {name: a}\n"
    found = planned({"a/crd.yaml": definition("Widget"), "a/widget.yaml": widget, "b/widget.yaml": widget})
    assert sorted(found.copied.values()) == ["a/crd.yaml", "a/widget.yaml"]
    assert "no kind Widget of lab.example/v1" in left(found)["b/widget.yaml"]


def test_the_first_of_two_objects_of_one_name_is_taken() -> None:
    found = planned({"a/1.yaml": configmap("x"), "a/2.yaml": configmap("x", "default"), "b/1.yaml": configmap("x"),
                     "c/1.yaml": configmap("x") + "---\n" + configmap("x")})  # fmt: skip
    assert sorted(found.copied.values()) == ["a/1.yaml", "b/1.yaml"]
    assert left(found)["a/2.yaml"] == "declares ConfigMap default/x again: a/1.yaml has it"
    assert missed(found) == ["a/2.yaml", "c/1.yaml"]


@pytest.mark.parametrize(
    ("path", "text", "why"),
    [
        ("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 'ENC[AES256_GCM,data:x]'}\n", "SOPS"),
        (".sops.yaml", "creation_rules: []\n", "SOPS"),
        ("workspace.yaml", configmap("a"), "makes a workspace"),
        (".treeplaneignore", "*.yaml\n", "Treeplane"),
        (".gitattributes", "* filter=x\n", "git"),
        ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", "metadata.name"),
        ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}\n", "generateName"),
        ("a.yaml", "# nothing\n", "holds no object"),
        ("a.yaml", b"\xff\xfe", "UTF-8"),
        ("a.yaml", b"a: " + b"b" * LIMIT, "3 MiB"),
        ("old.yaml", "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n", "apps/v1beta1"),
    ],
)
def test_what_cannot_be_taken(path: str, text: str | bytes, why: str) -> None:
    found = planned({path: text, "b/b.yaml": configmap("b")})
    assert why in left(found)[path]
    assert list(found.copied.values()) == ["b/b.yaml"]


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("Web_App", "web-app"), ("-", "fleet"), ("compute", "compute-fleet"), ("ü", "fleet"), ("a" * 80, "a" * 63),
        ("v1.2", "v1-2"),
    ],
)  # fmt: skip
def test_names_that_no_workspace_may_have_are_made_fit(directory: str, name: str) -> None:
    [workspace] = planned({f"{directory}/a.yaml": configmap("a")}).workspaces
    assert (workspace.name, workspace.fitted) == (name, True)


def test_two_that_would_be_called_the_same_are_told_apart() -> None:
    found = planned({"a.b/a.yaml": configmap("a"), "a_b/a.yaml": configmap("a"), "a-b/a.yaml": configmap("a")})
    assert sorted(each.name for each in found.workspaces) == ["a-b", "a-b-2", "a-b-3"]


def test_files_of_ours_stand_beside_any_of_theirs() -> None:
    found = planned({"a/apis.yaml": deployment("a", "x"), "a/_apis.yaml": configmap("a"),
                     "a/namespaces.yaml/a.yaml": configmap("b")})  # fmt: skip
    assert {path for path in found.made if path.startswith("workspaces/root/a/")} == {
        "workspaces/root/a/workspace.yaml", "workspaces/root/a/__apis.yaml", "workspaces/root/a/_namespaces.yaml"
    }  # fmt: skip


def test_the_outermost_namespace_of_kustomizations_is_declared() -> None:
    found = planned({
        "a/x/kustomization.yaml": kustomization("../y", "a.yaml"),
        "a/x/a.yaml": configmap("a", "own"),
        "a/y/kustomization.yaml": kustomization("../z", "ns.yaml", more="namespace: outer\n"),
        "a/y/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: yard}\n",
        "a/z/kustomization.yaml": kustomization("b.yaml", more="namespace: inner\n"),
        "a/z/b.yaml": configmap("b", "own-too"),
    })  # fmt: skip
    assert [(each.path, each.namespaces) for each in found.workspaces] == [("root:a-x", ["own"])]


def test_kustomizations_that_name_each_other_come_to_an_end() -> None:
    others = [f"../{n}" for n in range(20)]
    circle = {f"a/{n}/kustomization.yaml": kustomization(*others, more=f"namespace: n{n}\n") for n in range(20)}
    found = planned(circle | {"b.yaml": configmap("b")})
    assert "b.yaml" in found.copied.values()

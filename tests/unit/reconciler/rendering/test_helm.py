"""The real helm on charts: what it renders, and in which words it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.renderings import RenderedFiles

from reconciler.rendering import invocation
from reconciler.rendering.confinement import Confinement
from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.request import Tool
from reconciler.rendering.settings import RenderingBounds, RenderingSettings

HERE = "workspaces/root/web"
Charting = Callable[..., Rendered]


@pytest.fixture
def chart(sandbox: Confinement, helm: Path, tmp_path: Path) -> Iterator[Charting]:
    """`chart(template, {path: content}, more of Chart.yaml)`; paths are below the chart."""
    files = RenderedFiles(tmp_path / "git")
    settings = RenderingSettings(
        tmp_path / "cache",
        Path("/none"),
        helm,
        kube_version="v1.36.0",
        api_versions=("example.org/v1",),
        bounds=RenderingBounds(seconds=20),
    )
    renderer = DirectoryRenderer(settings, [sandbox])

    def rendered(template: str, others: dict[str, str] | None = None, more: str = "") -> Rendered:
        shown = {"Chart.yaml": f"apiVersion: v2\nname: shop\nversion: 0.1.0\n{more}", "templates/a.yaml": template}
        shown |= others or {}
        request = files.request({f"{HERE}/{path}": said for path, said in shown.items()}, HERE, Tool.HELM)
        return renderer.rendered(request)

    yield rendered
    renderer.close()
    assert list((tmp_path / "cache" / "work").iterdir()) == []


def test_values_release_and_namespace(chart: Charting) -> None:
    came = chart(
        "a: {{ .Values.a }}\nr: {{ .Release.Name }}\nn: {{ .Release.Namespace }}\ni: {{ .Release.IsInstall }}",
        {"values.yaml": "a: 2"},
    )
    assert came.output.split(b"\n")[2:6] == [b"a: 2", b"r: web", b"n: default", b"i: true"]


def test_what_a_chart_may_ask_of_a_cluster(chart: Charting) -> None:
    came = chart(
        "v: {{ .Capabilities.KubeVersion.Version }}\n"
        'o: {{ .Capabilities.APIVersions.Has "example.org/v1" }}\n'
        'n: {{ .Capabilities.APIVersions.Has "example.org/v2" }}\n'
        'l: {{ len (lookup "v1" "Secret" "default" "x") }}\n'
        'd: {{ getHostByName "localhost" | quote }}\n'
    )
    assert came.output.split(b"\n")[2:7] == [b"v: v1.36.0", b"o: true", b"n: false", b"l: 0", b'd: ""']


def test_definitions_come_and_hooks_do_not(chart: Charting) -> None:
    hook = "a: {metadata}\nmetadata:\n  annotations: {helm.sh/hook: pre-install}\nkind: Job\napiVersion: batch/v1\n"
    came = chart("a: shown", {"crds/c.yaml": "kind: Definition", "templates/hook.yaml": hook})
    assert b"kind: Definition" in came.output and b"a: shown" in came.output and b"pre-install" not in came.output


def test_dependencies_that_are_committed(chart: Charting) -> None:
    dependency = 'dependencies: [{name: db, version: 0.1.0, repository: "https://charts.example.org"}]'
    came = chart("a: b", None, dependency)
    assert "db" in came.fault and "helm dependency build" in came.hint and came.lasting
    there = {"charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 0.1.0\n", "charts/db/templates/d.yaml": "d: e"}
    assert b"d: e" in chart("a: b", there, dependency).output


@pytest.mark.parametrize(
    "template", ["a: {{ randAlphaNum 12 }}", "a: {{ uuidv4 }}", 'a: {{ (genCA "x" 1).Cert | b64enc }}']
)
def test_what_differs_each_time(chart: Charting, template: str) -> None:
    came = chart(template)
    assert came.fault.startswith("two renderings of the same files differ") and came.lasting
    assert "values.yaml" in came.hint


def test_it_reads_nothing_of_the_machine(chart: Charting) -> None:
    came = chart('a: {{ .Files.Get "/etc/passwd" | quote }}\nb: {{ .Files.Get "../../../../../etc/passwd" | quote }}')
    assert came.output.split(b"\n")[2:4] == [b'a: ""', b'b: ""']
    came = chart('a: {{ env "PATH" }}')
    assert "function" in came.fault and came.output == b""


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("a: {{ .Foo.Bar", f"{HERE}/templates/a.yaml:1"),
        ('a: {{ required "say x" .Values.x }}', f"({HERE}/templates/a.yaml:1:6): say x"),
        ("a: [b", f"YAML parse error on {HERE}/templates/a.yaml"),
    ],
)
def test_mistakes_are_told_in_its_own_words(chart: Charting, template: str, fault: str) -> None:
    came = chart(template)
    assert fault in came.fault and "Use --debug" not in came.fault
    assert came.hint == f"try it in a clone: helm template {HERE}"


def test_a_chart_for_another_kubernetes(chart: Charting) -> None:
    came = chart("a: b", None, 'kubeVersion: ">=1.99.0"')
    assert "1.99" in came.fault and "choose a version" in came.hint


def test_one_that_takes_all_memory(chart: Charting) -> None:
    came = chart('{{ $x := repeat 200000000 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }}a: b')
    assert came.fault == "it takes more than 2,048 MiB of memory" and came.lasting


@pytest.mark.parametrize(
    ("directory", "name"),
    [("a/web", "web"), ("", "release"), ("a/Web_Shop", "web-shop"), ("-", "release"), ("a/" + "x" * 60, "x" * 53)],
)
def test_releases_are_called_as_their_directory(directory: str, name: str) -> None:
    assert invocation.release_name(directory) == name

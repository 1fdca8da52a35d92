"""The real kustomize on what people and strangers commit: what it renders, and in which words it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.renderings import RenderedFiles

from reconciler.rendering.confinement import Confinement
from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.settings import RenderingBounds, RenderingSettings

BOUNDS = RenderingBounds(seconds=20, memory=512 * 1024 * 1024)
HERE = "workspaces/root/web"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n"
Rendering = Callable[..., Rendered]


@pytest.fixture
def render(sandbox: Confinement, kubectl_program: Path, tmp_path: Path) -> Iterator[Rendering]:
    """`render(kustomization, {path: content})`, paths from the top or below the directory itself (`./`)."""
    files = RenderedFiles(tmp_path / "git")
    settings = RenderingSettings(tmp_path / "cache", kubectl_program, Path("/none"), bounds=BOUNDS)
    renderer = DirectoryRenderer(settings, [sandbox])

    def rendered(
        kustomization: str, others: dict[str, str] | None = None, links: dict[str, str] | None = None
    ) -> Rendered:
        shown = {f"{HERE}/kustomization.yaml": kustomization}
        shown |= {path.replace("./", f"{HERE}/", 1): content for path, content in (others or {}).items()}
        return renderer.rendered(files.request(shown, HERE, links=links))

    yield rendered
    renderer.close()
    assert list((tmp_path / "cache" / "work").iterdir()) == []


def test_a_base_that_stands_elsewhere(render: Rendering) -> None:
    base = {"shared/base/kustomization.yaml": "resources: [a.yaml]", "shared/base/a.yaml": CONFIG}
    came = render("namePrefix: web-\nnamespace: web\nresources: [../../../shared/base]", base)
    assert came.fault == ""
    assert b"name: web-settings\n" in came.output and b"namespace: web\n" in came.output


def test_generators_patches_and_components(render: Rendering) -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {c: d}"
    others = {"./a.yaml": CONFIG, "./props.txt": "x", "./part/kustomization.yaml": component}
    came = render(
        "resources: [a.yaml]\ncomponents: [part]\nconfigMapGenerator: [{name: more, files: [props.txt]}]\n"
        'patches: [{target: {name: settings}, patch: \'[{"op": "add", "path": "/data/p", "value": "q"}]\'}]',
        others,
    )
    assert came.fault == ""
    assert b"p: q" in came.output and b"c: d" in came.output and b"name: more-" in came.output


def test_a_link_beside_it_is_followed(render: Rendering) -> None:
    others = {"./b/a.yaml": CONFIG, "./b/kustomization.yaml": "resources: [a.yaml]"}
    assert b"settings" in render("resources: [c]", others, links={f"{HERE}/c": "b"}).output


def test_what_sops_encrypted_stays_as_it_is(render: Rendering) -> None:
    secret = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: 'ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]'}\n"
        "sops: {mac: 'ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]', mac_only_encrypted: true, version: 3.11.0}\n"
    )
    came = render("namePrefix: web-\nresources: [s.yaml]", {"./s.yaml": secret})
    assert (
        b"mac_only_encrypted: true" in came.output and b"a: ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]" in came.output
    )


@pytest.mark.parametrize(
    "kustomization",
    [
        'configMapGenerator: [{name: a, files: ["/proc/self/environ"]}]',
        'configMapGenerator: [{name: a, envs: ["/proc/self/environ"]}]',
        'configMapGenerator: [{name: a, files: ["../../../../../../../../../proc/self/environ"]}]',
        'resources: ["/etc/passwd"]',
        'resources: ["../../../../../../../../../../etc/passwd"]',
        'resources: ["../../../.."]',
        'resources: ["/"]',
    ],
)
def test_it_reads_nothing_of_the_machine(render: Rendering, kustomization: str) -> None:
    came = render(kustomization)
    assert came.output == b"" and came.lasting
    assert came.fault.startswith("it reads ") and came.fault.endswith(" outside of the files that it may see"), came
    assert "spec.rendering.shared" in came.hint


@pytest.mark.parametrize("target", ["/proc/self/environ", "../../../../../proc/self/environ", "/etc"])
def test_a_link_out_of_the_repository_is_named(render: Rendering, target: str) -> None:
    came = render("configMapGenerator: [{name: a, files: [l]}]", links={f"{HERE}/l": target})
    assert came.fault.startswith(f"{HERE}/l is a symbolic link to ") and came.hint and came.lasting


@pytest.mark.parametrize(
    "base",
    [
        "https://example.org/base.yaml", "https://github.com/example/base//deploy?ref=v1", "git::https://example.org/x.git",
        "git@example.org:a/b.git", "ssh://git@example.org/a/b.git", "file:///etc/", "http://127.0.0.1:1/x.yaml",
    ],
)  # fmt: skip
def test_a_base_on_the_network_is_not_fetched(render: Rendering, base: str) -> None:
    came = render(f'resources: ["{base}"]')
    assert came.fault.startswith(f"it would have to fetch {base} ") and came.lasting
    assert came.hint.startswith("there is no network")


def test_a_base_that_may_not_be_seen(render: Rendering) -> None:
    came = render("resources: [../other]", {"workspaces/root/seen.yaml": CONFIG})
    assert "workspaces/root/other" in came.fault and "/fleet" not in came.fault and "/run-" not in came.fault
    assert "spec.rendering.shared" in came.hint


def test_a_file_beside_its_directory(render: Rendering) -> None:
    came = render("resources: [../a.yaml]", {"workspaces/root/a.yaml": CONFIG})
    assert "is not in or below" in came.fault and "make the place of this file a base" in came.hint


@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
@pytest.mark.parametrize(
    "how", ["exec: {path: ./run.sh}", "container: {image: example.org/x, network: true}", "starlark: {path: x}"]
)
def test_plugins_are_not_run(render: Rendering, field: str, how: str) -> None:
    plugin = (
        "apiVersion: example.com/v1\nkind: Plugin\nmetadata:\n  name: p\n  annotations:\n"
        f"    config.kubernetes.io/function: |\n      {how}\n"
    )
    others = {"./p.yaml": plugin, "./run.sh": "#!/bin/sh\ntouch /tmp/ran\n", "./a.yaml": CONFIG}
    came = render(f"resources: [a.yaml]\n{field}: [p.yaml]", others)
    assert came.output == b"" and came.lasting
    assert "plugins are programs, and are not run" in came.hint, came


def test_charts_of_a_kustomization_are_not_rendered(render: Rendering) -> None:
    came = render('helmCharts: [{name: x, repo: "https://example.org", version: "1"}]')
    assert came.hint == "let the chart be a directory of its own, with its Chart.yaml in it"


@pytest.mark.parametrize(
    ("kustomization", "word"),
    [("a: [b", "yaml"), ("foo: bar", "foo"), ("", "empty"), ("resources: [nothere.yaml]", f"{HERE}/nothere.yaml")],
)
def test_mistakes_are_told_in_its_own_words(render: Rendering, kustomization: str, word: str) -> None:
    came = render(kustomization)
    assert word in came.fault and came.hint and came.lasting
    assert render(kustomization) == came


def test_what_is_no_manifest(render: Rendering) -> None:
    came = render("resources: [a.yaml]", {"./a.yaml": "hello: world"})
    assert "a.yaml" in came.fault and "missing Resource metadata" in came.fault
    assert came.hint == f"try it in a clone: kubectl kustomize {HERE}"


def test_nothing_is_a_fault(render: Rendering) -> None:
    assert render("resources: []").fault == "it renders nothing"


def test_aliases_that_multiply(render: Rendering) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    bomb = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + "\n".join(lines)
    came = render("resources: [a.yaml]", {"./a.yaml": bomb})
    assert came.output == b"" and came.fault
    came = render("\n".join(lines))
    assert came.output == b"" and came.fault

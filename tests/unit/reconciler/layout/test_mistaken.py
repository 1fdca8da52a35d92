"""Files that are no manifests are told as what they are, in one error each."""

from __future__ import annotations

import pytest

from reconciler.layout import manifest

PLACE = "workspaces/root/shop"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("docker-compose.yml", "version: '3'\nservices: {web: {image: nginx}}\n", ":1: is a compose file"),
        ("stack.yaml", "services:\n  web: {image: nginx}\n", ":1: is a compose file"),
        ("values.yaml", "replicas: 3\n", ":1: holds values of a Helm chart, and no object"),
        ("values-production.yaml", "\n\nreplicas: 3\n", ":3: holds values of a Helm chart, and no object"),
        ("shop-values.yml", "replicas: 3\n", ":1: holds values of a Helm chart, and no object"),
        (
            "app.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}\n",
            ":4: is a template of",
        ),
        ("app.yaml", '{{- include "shop.labels" . }}\n', ":1: is a template of"),
        ("notes.yaml", "todo: [a, b]\n", ":1: holds no object: apiVersion, kind and metadata are missing"),
        ("notes.json", '{"todo": 1}', ":1: holds no object: apiVersion, kind and metadata are missing"),
    ],
)
def test_what_it_is_is_said_once(name: str, text: str, said: str) -> None:
    found = manifest.read(text.encode(), f"{PLACE}/{name}")
    assert found.objects == []
    [error] = found.errors
    assert str(error).startswith(f"{PLACE}/{name}{said}")
    assert error.hint


def test_a_manifest_with_a_mistake_is_a_manifest() -> None:
    """Whatever its file is called, and whatever else stands in it."""
    text = b"kind: ConfigMap\nservices: {}\n"
    messages = [each.message for each in manifest.read(text, f"{PLACE}/values.yaml").errors]
    assert messages == ["apiVersion is missing", "metadata is missing"]


def test_braces_alone_are_no_template() -> None:
    [error] = manifest.read(b"a: {{ x }}\n", f"{PLACE}/app.yaml").errors
    assert "template" not in error.message

"""`treeplane crd snapshot`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.__main__ import main

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.w.example, uid: abc, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  group: w.example
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.mode}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {mode: {type: string, description: "on\\nand off"}}}
status: {storedVersions: [v1]}
"""
OTHER = DEFINITION.replace("widgets", "gears").replace("Widget", "Gear")
WEBHOOK = """\
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {%s}
"""


def treeplane(text: str, *arguments: str, prefix: str = "today") -> Result:
    return CliRunner().invoke(main, ["crd", "snapshot", "-f", "-", "--prefix", prefix, *arguments], input=text)


def converting(client: str) -> str:
    return DEFINITION.replace("  scope:", f"{WEBHOOK % client}  scope:")


def test_a_definition_becomes_a_schema() -> None:
    done = treeplane(DEFINITION)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.endswith("\n---\n")
    [found] = [each for each in yaml.safe_load_all(done.stdout) if each]
    assert found == {
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": {"name": "today.widgets.w.example"},
        "spec": {
            "group": "w.example",
            "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "selectableFields": [{"jsonPath": ".spec.mode"}],
                    "subresources": {},
                    "schema": yaml.safe_load(DEFINITION)["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
                }
            ],
        },
    }


@pytest.mark.parametrize("joined", ["---\n{}---\n{}", "{}---\n{}---\n"])
def test_several_in_one_file(joined: str) -> None:
    names = [each["metadata"]["name"] for each in yaml.safe_load_all(treeplane(joined.format(DEFINITION, OTHER)).stdout) if each]  # fmt: skip # noqa: E501
    assert names == ["today.widgets.w.example", "today.gears.w.example"]


def test_as_json_and_of_a_list_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "crds.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(DEFINITION)]}))
    arguments = ["crd", "snapshot", "--filename", str(file), "--prefix", "v2", "--output", "json"]
    done = CliRunner().invoke(main, arguments)
    assert json.loads(done.stdout.removesuffix("---\n"))["metadata"]["name"] == "v2.widgets.w.example"


def test_a_webhook_that_is_a_url_stays() -> None:
    done = treeplane(converting("url: https://convert.example/widgets, caBundle: null"))
    assert done.exit_code == 0, done.stderr
    assert yaml.safe_load(done.stdout.removesuffix("---\n"))["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://convert.example/widgets"},
        },
    }


@pytest.mark.parametrize(
    ("text", "prefix", "said"),
    [
        (converting("service: {namespace: a, name: b}"), "v1", "webhooks that refer to services are not supported"),
        (DEFINITION, "Today", "<stdin>:1: metadata.name: Invalid value"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "v1", "<stdin>:1: this is a ConfigMap of v1"),
        (DEFINITION.replace("type: object\n", "type: thing\n"), "v1", "openAPIV3Schema"),
        ("a: [", "v1", "<stdin>:2:1: YAML"),
        (DEFINITION.partition("spec:")[0], "v1", "<stdin>:1: spec"),
    ],
)
def test_what_cannot_be_one(text: str, prefix: str, said: str) -> None:
    done = treeplane(text, prefix=prefix)
    assert done.exit_code == 3
    assert done.stdout == ""
    assert said in done.stderr

"""Manifests in a version that is not the storage version."""

from typing import Any

CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.w.io}
spec:
  group: w.io
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer, default: 3}}}}
  - name: v1beta1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
WIDGET = "apiVersion: w.io/v1beta1\nkind: Widget\nmetadata: {name: w}\nold: true\n"


def test_they_are_kept_in_the_storage_version_with_its_fields_and_defaults(empty: Any) -> None:
    loaded = empty.begin({"workspaces/root/a/crd.yaml": CRD, "workspaces/root/a/w.yaml": WIDGET})
    assert empty.held(loaded) == {}
    kept = empty.get("root:a", "widgets.w.io", "w")
    assert (kept["apiVersion"], kept["size"], "old" in kept) == ("w.io/v1", 3, False)
    empty.commit({"workspaces/root/a/other.yaml": WIDGET.replace("name: w", "name: x")})
    assert empty.written() == ["+widgets.w.io/root:a/default/x"]


HOOK = """  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://hooks.example.com/"}}
"""


def test_a_commit_asks_no_webhook(empty: Any) -> None:
    files = {"workspaces/root/a/crd.yaml": CRD + HOOK, "workspaces/root/a/w.yaml": WIDGET}
    [problem] = empty.held(empty.begin(files))["root:a"]
    assert problem.startswith("workspaces/root/a/w.yaml:1: Widget w: only a webhook turns w.io/v1beta1 into w.io/v1")
    loaded = empty.commit({"workspaces/root/a/w.yaml": WIDGET.replace("v1beta1", "v1").replace("old: true\n", "")})
    assert empty.held(loaded) == {}
    assert empty.get("root:a", "widgets.w.io", "w")["apiVersion"] == "w.io/v1"

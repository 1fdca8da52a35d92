"""The form of git against the defaults of Kubernetes' own kinds: every field changed, one at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.registry import strategy
from apiserver.registry.kinds import kubernetes_builtins
from reconciler.layout import manifest
from reconciler.layout.alike import same
from reconciler.plan.gitform import declared_form

Object = dict[str, Any]
Path = tuple[str | int, ...]

FILE = b"""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: x}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: a
        image: nginx:latest
        ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]
        livenessProbe: {httpGet: {path: /, port: 80}}
      - {name: b, image: "x:1"}
      volumes: [{name: v, configMap: {name: c}}]
---
apiVersion: v1
kind: Service
metadata: {name: s, namespace: x}
spec: {selector: {a: b}, ports: [{port: 80}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: c, namespace: x}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
"""


def render(value: Object) -> Object:
    out = copy.deepcopy(value)
    group, _, version = out["apiVersion"].rpartition("/")
    kind = kubernetes_builtins().by_kind(group, version, out["kind"])
    assert kind is not None
    strategy.prepare(kind, out)
    return out


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if parts is None:
        yield path, value
        return
    for key, part in parts:
        yield from leaves(part, (*path, key))


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}x"


@pytest.mark.parametrize("number", [0, 1, 2])
def test_little_more_than_the_change_enters_git(number: int) -> None:
    written = manifest.read(FILE, "a.yaml").objects[number].value
    live = render(written)
    before = dict(leaves(written))
    for path, value in leaves(live):
        if path[0] != "spec":
            continue
        final = copy.deepcopy(live)
        at: Any = final
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = other(value)
        final = render(final)
        declared = declared_form(written, live, final, render)
        assert same(render(declared), final)
        assert len([leaf for leaf in leaves(declared) if leaf not in before.items()]) <= 3, path

"""What a schema costs: µs per validate, prune, default, apply and update, of a Deployment and of a custom resource.

python bench/schema.py
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import orjson

from apiserver.registry.schemas import kubernetes_source
from apiserver.schema.ownership import ApplyOptions, apply, record_update
from apiserver.schema.structural import Schema, compile_schema

NOW = "2026-01-01T00:00:00Z"

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "annotations": {"team": "web"}},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "web",
                        "image": "registry.example.com/shop/web:1.4.2",
                        "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "metrics"}],
                        "env": [
                            {"name": "LOG_LEVEL", "value": "info"},
                            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
                        ],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10},
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}],
                    }
                ],
                "volumes": [{"name": "config", "configMap": {"name": "web"}}],
            },
        },
    },
}

WIDGET_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100},
                "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                "host": {"type": "string", "pattern": "^[a-z0-9.-]+$", "maxLength": 253},
                "port": {"x-kubernetes-int-or-string": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "parts": {
                    "type": "array",
                    "maxItems": 50,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string", "minLength": 1},
                            "weight": {"type": "integer", "default": 1},
                            "args": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}

WIDGET: dict[str, Any] = {
    "apiVersion": "example.io/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": "shop", "labels": {"app": "w"}},
    "spec": {
        "size": 3,
        "host": "web.example.com",
        "port": "http",
        "labels": {f"key{i}": f"value{i}" for i in range(8)},
        "parts": [{"name": f"part{i}", "args": ["--one", "--two"]} for i in range(8)],
    },
}


def microseconds(work: Callable[[], object], seconds: float = 0.3) -> float:
    work()
    runs, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        work()
        runs += 1
    return elapsed / runs * 1e6


def report(name: str, schema: Schema, manifest: dict[str, Any]) -> None:
    options = ApplyOptions("bench", False, manifest["apiVersion"], NOW)
    live = apply(None, manifest, schema, options)
    schema.default(live)
    changed = copy.deepcopy(manifest)
    changed["metadata"]["labels"]["app"] = "other"
    dropped = copy.deepcopy(manifest)
    del dropped["metadata"]["labels"]

    def update() -> None:
        new = {**live, "metadata": {**live["metadata"], "labels": {"app": "x"}}}
        record_update(live, new, schema, "kubectl-edit", manifest["apiVersion"], NOW)

    figures = {
        "validate": microseconds(lambda: schema.validate(live)),
        "prune": microseconds(lambda: schema.prune(live)),
        "default": microseconds(lambda: schema.default(live)),
        "decode": microseconds(lambda: schema.decode_errors(live)),
        "apply: create": microseconds(lambda: apply(None, manifest, schema, options)),
        "apply: no change": microseconds(lambda: apply(live, manifest, schema, options)),
        "apply: change": microseconds(lambda: apply(live, changed, schema, options)),
        "apply: removal": microseconds(lambda: apply(live, dropped, schema, options)),
        "update": microseconds(update),
    }
    print(f"{name} ({len(orjson.dumps(manifest))} bytes)")
    for what, cost in figures.items():
        print(f"  {what:<18}{cost:8.1f} µs")


def main() -> None:
    start = time.perf_counter()
    deployment = kubernetes_source("io.k8s.api.apps.v1.Deployment").compiled
    print(f"compile of the Deployment's schema: {(time.perf_counter() - start) * 1e3:.1f} ms")
    start = time.perf_counter()
    widget = compile_schema(WIDGET_SCHEMA)
    print(f"compile of the custom resource's schema: {(time.perf_counter() - start) * 1e3:.1f} ms")
    report("Deployment", deployment, DEPLOYMENT)
    report("custom resource", widget, WIDGET)


if __name__ == "__main__":
    main()

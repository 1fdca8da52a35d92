"""Whatever is sent, a strategy gives errors or an object that it would store again as it is; it never fails."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.registry import kinds, strategy, tables

CORPUS = Path(__file__).parents[3] / "golden" / "strategy" / "corpus.yaml"
OURS = """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {name: a}
spec: {type: {name: team, path: root}}
---
apiVersion: scheduling.kcp.io/v1alpha1
kind: Placement
metadata: {name: a}
spec:
  locationSelectors: [{matchLabels: {a: b}}]
  namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}
  locationWorkspace: "root:a"
---
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {name: a}
spec: {connection: {kubeconfigSecretRef: {name: a}}}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: a}
spec: {reference: {export: {path: root, name: a}}}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.as.example.io}
spec:
  group: example.io
  names: {plural: as, kind: A}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {type: object}}]
"""
VALUES = [None, True, 0, -1, 1.5, "", "x", "a/b/c", "é", [], {}, [None], [{}], {"a": None}, {"x": 1}, [1, "a"], "1Gi"]


def seeds() -> list[tuple[kinds.ServedKind, dict[str, Any]]]:
    found = []
    for obj in [*yaml.safe_load_all(CORPUS.read_text()), *yaml.safe_load_all(OURS)]:
        group, _, version = obj["apiVersion"].rpartition("/")
        gvk = (group, version, obj["kind"])
        kind = kinds.target_builtins().by_kind(*gvk) or kinds.common_builtins().by_kind(*gvk)
        assert kind is not None
        found.append((kind, json.loads(json.dumps(obj, default=str))))
    return found


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container below a value with one of its keys or indexes."""
    for key, item in list(
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield value, key
        yield from places(item)


SEEDS = seeds()


@settings(max_examples=800, deadline=None)
@given(st.integers(0, 2**32))
def test_broken_objects(seed: int) -> None:
    chance = random.Random(seed)
    kind, seed_object = chance.choice(SEEDS)
    obj = copy.deepcopy(seed_object)
    for _ in range(chance.randint(1, 3)):
        if not (found := list(places(obj))):
            break
        holder, key = chance.choice(found)
        if chance.random() < 0.2 and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = copy.deepcopy(chance.choice(VALUES))
    before = copy.deepcopy(obj)
    strategy.unknown_fields(kind, obj)
    assert obj == before
    if strategy.prepare_create(kind, obj):
        return
    again = copy.deepcopy(obj)
    assert strategy.prepare(kind, again) == [] and again == obj
    assert strategy.prepare_update(kind, again, copy.deepcopy(obj)) == []
    tables.row(kind, obj)

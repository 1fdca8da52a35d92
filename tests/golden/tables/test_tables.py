"""Tables of Kubernetes' kinds and of a custom one, against those of a kube-apiserver 1.36 (see record.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.registry import tables
from apiserver.registry.kinds import KindTable, kinds_of_crd, target_builtins

HERE = Path(__file__).parent
ANSWERS = json.loads((HERE / "answers.json").read_text())
AGES = {"Age", "Created At", "Last Seen", "First Seen", "Last Schedule", "Duration", "Date"}
OTHERWISE = {
    "v1 ResourceQuota/a": "what is limited shows before anything is counted",
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding/c": "a selector is no Go struct",
    "autoscaling/v1 HorizontalPodAutoscaler/a": "the memory's target",
}
"""Rows that differ, and why."""


@pytest.fixture(scope="module")
def served() -> KindTable:
    corpus = yaml.safe_load_all((HERE / "corpus.yaml").read_text())
    definition = next(o for o in corpus if o["kind"] == "CustomResourceDefinition")
    return KindTable([*target_builtins().all(), *kinds_of_crd(definition)])


@pytest.mark.parametrize("name", ANSWERS)
def test_a_table_is_as_kubernetes_has_it(served: KindTable, name: str) -> None:
    version, kind = name.split()
    group, _, version = version.rpartition("/")
    found = served.by_kind(group, version, kind)
    assert found is not None
    printer = tables.printer(found)
    assert [[c.name, c.type, c.format, c.priority] for c in printer.columns] == ANSWERS[name]["columns"]
    for obj, cells in ANSWERS[name]["rows"]:
        shown = [printer.cells(obj), cells]
        told = f"{name}/{obj['metadata']['name']}"
        ours, theirs = ([_steady(c.name, v) for c, v in zip(printer.columns, row, strict=True)] for row in shown)
        assert (ours == theirs) == (told not in OTHERWISE), f"{told}: {ours} instead of {theirs}"


def _steady(column: str, cell: Any) -> Any:
    """Without what depends on the time of the day."""
    return "ago" if column in AGES and cell not in (None, "<unknown>", "<none>", "<invalid>") else cell

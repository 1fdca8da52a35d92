"""docs/metrics.md, docs/monitoring.md and examples/monitoring say of metrics what there is, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.alerts import ALERTS, MONITORING, firing, rules

from reconciler.commands.metricspage import metrics, page

TOP = Path(__file__).parents[2]
REFERENCE, GUIDE = TOP / "docs" / "metrics.md", TOP / "docs" / "monitoring.md"
_NAME = re.compile(r"\b(?:treeplane|apiserver|workqueue|process)_[a-z0-9_]+\b")
_OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")
_PATHS = {"treeplane_io"}


def named(text: str) -> set[str]:
    return {_OF_HISTOGRAMS.sub("", name) for name in _NAME.findall(text)}


def expressions() -> dict[str, str]:
    """All that alerts and the dashboard ask for, by where."""
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    shown = {panel["title"]: " ".join(target["expr"] for target in panel["targets"]) for panel in panels}
    return {name: rule["expr"] for name, rule in rules().items()} | shown


def test_the_reference_is_made_of_the_definitions() -> None:
    assert page(REFERENCE.read_text()) == REFERENCE.read_text(), "make settings"


@pytest.mark.parametrize("where", expressions())
def test_what_alerts_and_the_dashboard_ask_for_is_exported(where: str) -> None:
    found = named(expressions()[where])
    assert found or where == "TreeplaneDown"
    assert found <= metrics().keys()


def test_the_guide_names_no_metric_that_there_is_not() -> None:
    assert named(GUIDE.read_text()) <= metrics().keys()


def test_each_alert_has_its_paragraph_and_each_paragraph_its_alert() -> None:
    headings = re.findall(r"^### (\S+)$", GUIDE.read_text(), re.MULTILINE)
    assert headings == [*rules()]
    for name, rule in rules().items():
        assert rule["annotations"]["runbook_url"] == f"docs/monitoring.md#{name.lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning")


def test_no_label_is_a_tenants_to_choose() -> None:
    labels = {label for metric in metrics().values() for label in metric.labels}
    assert labels == {
        "verb", "group", "version", "resource", "subresource", "scope", "code", "request_kind", "index", "service",
        "result", "phase", "kind", "to", "operation", "ready", "name", "process", "certificate",
    }  # fmt: skip


def test_promtool_takes_the_alerts_and_the_configuration(promtool: Path, tmp_path: Path) -> None:
    for file in MONITORING.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for name in ("token", "ca.crt"):
        (tmp_path / name).touch()
    for words in (
        ["rules", "--lint-fatal", str(ALERTS)],
        ["config", "--syntax-only", str(tmp_path / "prometheus.yaml")],
    ):
        done = subprocess.run([promtool, "check", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_who_is_not_scraped_is_told_of(promtool: Path, tmp_path: Path) -> None:
    assert firing(promtool, tmp_path) == {"TreeplaneDown"}

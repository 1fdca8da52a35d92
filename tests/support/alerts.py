"""Which alerts of examples/monitoring a scrape brings about, as Prometheus' own promtool sees it.

Numbers are never written by hand: they are those of scrapes. They stand as they are for as long as any alert waits,
which here takes no time; times are moved to where promtool has the present.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import yaml
from support.counted import Series, series

MONITORING = Path(__file__).parents[2] / "examples" / "monitoring"
ALERTS = MONITORING / "alerts.yaml"
_NOW = 3 * 3600
"""Seconds since promtool's beginning of time at which it is looked which alerts there are."""
_JOB = {"job": "treeplane", "instance": "a:6443"}


def rules() -> dict[str, dict[str, Any]]:
    """By the alert's name."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def firing(promtool: Path, folder: Path, *scrapes: str, stands: int = 60, now: float = 0.0) -> set[str]:
    """The names of the alerts, where the last of these scrapes stands for so many minutes, and those before it came in
    the minutes before that. `now`: when, in seconds since 1970; 0 for the present."""
    shift = _NOW - (now or time.time())
    found = [_moved(series(text), shift) for text in scrapes]
    before = _NOW // 60 - stands - len(found) + 1
    inputs = [
        {"series": _spelled(*key), "values": _values(before, [each.get(key) for each in found], stands)}
        for key in sorted({key for each in found for key in each}, key=str)
    ]
    if scrapes:
        up = _values(before, [1.0] * len(found), stands)
        inputs.append({"series": _spelled("up", frozenset()), "values": up})
    wanted = [{"eval_time": f"{_NOW}s", "alertname": name, "exp_alerts": []} for name in rules()]
    tests = [{"interval": "1m", "input_series": inputs, "alert_rule_test": wanted}]
    file = folder / "alerts-test.yaml"
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "SUCCESS" in said or "alertname:" in said, said
    return {name for name in rules() if f"alertname: {name}," in said}


def _moved(found: Series, shift: float) -> Series:
    return {
        key: value + shift if key[0].endswith("_timestamp_seconds") and value else value for key, value in found.items()
    }


def _values(before: int, numbers: list[float | None], stands: int) -> str:
    """In promtool's words: nothing for so many minutes, these, and the last of them again and again."""
    told = ["_" if number is None else _number(number) for number in numbers]
    last = f"{told[-1]}x{stands}" if told[-1] != "_" else f"_x{stands}"
    return " ".join([f"_x{before}", *told[:-1], last])


def _number(number: float) -> str:
    return f"{number:.3f}" if math.isfinite(number) else str(number)


def _spelled(name: str, labels: frozenset[tuple[str, str]]) -> str:
    told = ", ".join(f'{key}="{value}"' for key, value in sorted({**dict(labels), **_JOB}.items()))
    return f"{name}{{{told}}}"

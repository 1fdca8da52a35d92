"""NOTICE names every package that comes with an installation, and its licence."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_dependency_is_named() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [re.split(r"[^A-Za-z0-9_.-]", each)[0] for each in said["dependencies"]]
    named = re.findall(r"^([A-Za-z0-9_.-]+) {2,}\S", (ROOT / "NOTICE").read_text(), re.MULTILINE)
    assert named == needed
    assert {"LICENSE", "NOTICE"} == set(said["license-files"])

"""docs/security.md names, for each door, the test that holds it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "security.md"
_NAMED = re.compile(r"`([a-z0-9_/]+\.py)::(\w+)`")


@cache
def _declared(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_each_test_that_is_named_exists() -> None:
    named = _NAMED.findall(DOCUMENT.read_text())
    assert len(named) > 40
    assert [f"{file}::{name}" for file, name in named if name not in _declared(file)] == []


def test_each_door_has_a_test() -> None:
    """But for what is stored and never acted upon."""
    rows = [line.split(" | ") for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    doors = [row for row in rows if row[0] != "| what is said"]
    without = [row[0] for row in doors if not _NAMED.search(row[-1]) and not row[1].startswith("Stored.")]
    assert len(doors) > 30
    assert without == []

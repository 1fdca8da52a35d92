"""One name, one meaning: of public classes, and of the words in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
HALVES = ("apiserver", "reconciler")

_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([a-z_/]+)` \|$", re.MULTILINE)


def _classes() -> Counter[str]:
    files = (file for half in HALVES for file in (REPOSITORY / half).rglob("*.py"))
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_bytes())))
    return Counter(n.name for n in nodes if isinstance(n, ast.ClassDef) and not n.name.startswith("_"))


def _words() -> list[tuple[str, str, str]]:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text()
    section = text.partition("\n## Words\n")[2].partition("\n## ")[0]
    found = _ROW.findall(section)
    assert len(found) == section.count("\n| ") - 1, "a row has three columns, the last a module"
    return found


def test_no_two_classes_share_a_name() -> None:
    shared = {name for name, count in _classes().items() if count > 1}
    assert shared == set(), "another class has this name: say in the name what this one is"


def test_each_word_has_one_meaning() -> None:
    words = [word.strip() for said, _, _ in _words() for word in said.split(",")]
    assert len(words) >= 40
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert [meaning for meaning, count in Counter(m for _, m, _ in _words()).items() if count > 1] == []


def test_each_word_is_at_home_in_a_module() -> None:
    homes = [where for _, _, where in _words()]
    assert [w for w in homes if not any((REPOSITORY / half / f"{w}.py").is_file() for half in HALVES)] == []

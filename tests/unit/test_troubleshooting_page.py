"""docs/troubleshooting.md has a paragraph for every reason that a condition can have where something is not well, and
for every exit code. The reasons are read from the program's own source, so that a new one fails here until it stands
on the page."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()

# Calls that make conditions, or say why something is not well, and which of their arguments is the reason.
MAKERS = {
    "condition": 2,
    "BindingTrouble": 1,
    "Denied": 0,
    "Lacking": 0,
    "MountState": 1,
    "NotRenewed": 0,
    "Unscheduled": 0,
    "told": 1,
    "told_of_status": 1,
}
# Where reasons are first in tuples or are members of something, which calls then hand on by a variable.
TABLES = {
    "reconciler.controllers.fleetcondition": "Trouble",
    "reconciler.sourcing.followed": "REASONS",
}
TUPLES = {
    "apiserver/registry/behaviours/approvals.py",
    "reconciler/controllers/namespacelife.py",
    "reconciler/plan/placement.py",
    "reconciler/syncing/renewal.py",
}
# What is well, and no kubectl shows as something else; Kubernetes' own words of what is well.
WELL = {
    *(
        "Applied",
        "ApprovedAnnotation",
        "ContentDeleted",
        "ContentHasNoFinalizers",
        "ContentRemoved",
        "CredentialsValid",
    ),
    *("Followed", "InitialNamesAccepted", "Initialized", "Loaded", "Local", "NamespaceScheduled", "NoConflicts"),
    *("ParsedGroupVersions", "ResourcesDiscovered", "Scheduled", "SufficientPods", "Synced", "Written"),
}
_REASON = re.compile(r"[A-Z][A-Za-z]+")
_MADE = re.compile(rf"\b(?:{'|'.join(MAKERS)})\(|\breason\b.* = ")
_CAMEL = re.compile(r"(?:[A-Z][a-z]+){2,}")


class Reason(NamedTuple):
    word: str
    where: str


def sources() -> list[Path]:
    """Without what only answers requests: the reasons of errors are Kubernetes' own."""
    found = sorted(path for top in ("reconciler", "apiserver") for path in (ROOT / top).rglob("*.py"))
    return [path for path in found if "apiserver/endpoints" not in path.as_posix()]


def words(value: ast.expr, module: str) -> Iterator[str]:
    """What an expression may be, as far as it is a constant."""
    match value:
        case ast.Constant(value=str(word)):
            yield word
        case ast.IfExp():
            yield from words(value.body, module)
            yield from words(value.orelse, module)
        case ast.Name(id=last) | ast.Attribute(attr=last) if last.isupper():
            found = importlib.import_module(module)
            for name in ast.unparse(value).split("."):
                found = getattr(found, name, None)
            if isinstance(found, str):
                yield str(found)


def called(path: Path) -> Iterator[Reason]:
    file, text = str(path.relative_to(ROOT)), path.read_text()
    if not _MADE.search(text) and file not in TUPLES:
        return
    module = file.removesuffix(".py").replace("/", ".")
    for node in ast.walk(ast.parse(text)):
        for value in given(node):
            yield from (Reason(word, f"{file}:{value.lineno}") for word in words(value, module))
        if isinstance(node, ast.Tuple) and file in TUPLES:
            first = [(e.value, e.lineno) for e in node.elts[:2] if isinstance(e, ast.Constant)]
            yield from (Reason(str(word), f"{file}:{at}") for word, at in first if _CAMEL.fullmatch(str(word)))


def given(node: ast.AST) -> list[ast.expr]:
    """What is a reason of a call, or of an assignment to a variable of that name."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in MAKERS:
            at = MAKERS[name]
            return [*node.args[at : at + 1], *(k.value for k in node.keywords if k.arg == "reason")]
        case ast.Assign(targets=[ast.Name(id="reason")], value=value):
            return [value]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return [v for t, v in zip(targets, values, strict=False) if isinstance(t, ast.Name) and t.id == "reason"]
        case _:
            return []


@functools.cache
def reasons() -> list[Reason]:
    found = [each for path in sources() for each in called(path)]
    for module, name in TABLES.items():
        table = getattr(importlib.import_module(module), name)
        found += [Reason(str(word), f"{module}.{name}") for word in table]
    return [each for each in found if _REASON.fullmatch(each.word)]


def test_every_reason_has_its_paragraph() -> None:
    found = reasons()
    assert len({each.word for each in found}) > 60  # the reading itself works
    missing = sorted({f"{word} ({where})" for word, where in found if word not in WELL and f"`{word}`" not in PAGE})
    assert not missing, "docs/troubleshooting.md has no paragraph for: " + ", ".join(missing)


def test_the_page_names_no_reason_that_there_is_none_of() -> None:
    known = {each.word for each in reasons()}
    rows = re.findall(r"^\| ((?:`[A-Z]\w+`(?:, )?)+) \|", PAGE.split("## kubectl says")[0], re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert named - known == set()


@pytest.mark.parametrize("code", ["1", "2", "3", "4", "130"])
def test_every_exit_code_has_its_paragraph(code: str) -> None:
    """Those of docs/commands.md, which is held to the program."""
    listed = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    assert code in listed
    assert set(listed) - {"0"} == set(re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE))

"""The reasons of conditions, as calls in the program's own source have them: a page that is held to them leaves none
out, and names none that there is not.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

# Calls that make conditions, or say why something is not well, and which of their arguments is the reason.
_MAKERS = {
    "condition": 2,
    "BindingTrouble": 1,
    "Denied": 0,
    "Lacking": 0,
    "MountState": 1,
    "NotRenewed": 0,
    "Unscheduled": 0,
    "terminating": 1,
    "told": 1,
    "told_of_status": 1,
}
_TYPED = {"condition", "BindingTrouble"}
"""Of these the first argument is the condition's type."""
# Where reasons are first in tuples or are members of something, which calls then hand on by a variable.
_TABLES = {
    "reconciler.controllers.fleetcondition": "Trouble",
    "reconciler.sourcing.followed": "REASONS",
}
_TUPLES = {
    "apiserver/registry/behaviours/approvals.py",
    "reconciler/controllers/namespacelife.py",
    "reconciler/plan/placement.py",
    "reconciler/syncing/renewal.py",
}
_REASON = re.compile(r"[A-Z][A-Za-z]+")
_MADE = re.compile(rf"\b(?:{'|'.join(_MAKERS)})\(|\breason\b.* = ")
_CAMEL = re.compile(r"(?:[A-Z][a-z]+){2,}")


class Reason(NamedTuple):
    """`type`: of the condition, "" where the call does not say it."""

    word: str
    where: str
    type: str = ""


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
    if not _MADE.search(text) and file not in _TUPLES:
        return
    module = file.removesuffix(".py").replace("/", ".")
    for node in ast.walk(ast.parse(text)):
        for value in given(node):
            types = list(typed(node, module)) or [""]
            yield from (Reason(word, f"{file}:{value.lineno}", t) for word in words(value, module) for t in types)
        if isinstance(node, ast.Tuple) and file in _TUPLES:
            first = [(e.value, e.lineno) for e in node.elts[:2] if isinstance(e, ast.Constant)]
            yield from (Reason(str(word), f"{file}:{at}") for word, at in first if _CAMEL.fullmatch(str(word)))


def given(node: ast.AST) -> list[ast.expr]:
    """What is a reason of a call, or of an assignment to a variable of that name."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)) if name in _MAKERS:
            at = _MAKERS[name]
            return [*node.args[at : at + 1], *(k.value for k in node.keywords if k.arg == "reason")]
        case ast.Assign(targets=[ast.Name(id="reason")], value=value):
            return [value]
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            return [v for t, v in zip(targets, values, strict=False) if isinstance(t, ast.Name) and t.id == "reason"]
        case _:
            return []


def typed(node: ast.AST, module: str) -> Iterator[str]:
    """The types of condition that a call says, as far as they are constants."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if name in _TYPED:
            yield from words(first, module)


@functools.cache
def reasons() -> list[Reason]:
    found = [each for path in sources() for each in called(path)]
    for module, name in _TABLES.items():
        table = getattr(importlib.import_module(module), name)
        found += [Reason(str(word), f"{module}.{name}") for word in table]
    return [each for each in found if _REASON.fullmatch(each.word)]

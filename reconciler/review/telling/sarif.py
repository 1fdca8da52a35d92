"""What is wrong with a change, and what may be, for forges that read SARIF. See telling.

Source: Static Analysis Results Interchange Format 2.1.0 (OASIS): 3.11.5 plain text messages, 3.27 results. Forges take
5,000 results of a run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from reconciler.review.result import ChangeReview
from reconciler.review.telling.harmless import plain

MOST = 5_000
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "held": "A workspace would be held: it stays as it is served.",
    "warning": "This is taken, and may not be what was meant.",
    "more": "There is more than a forge takes.",
}
_FLEET = "treeplane.yaml"

Object = dict[str, Any]


def told(review: ChangeReview) -> str:
    results = list(_results(review))
    if len(results) > MOST:
        missing = len(results) - MOST + 1
        results = [*results[: MOST - 1], _result("more", "note", f"and {missing} more", _FLEET, 0, 0)]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "treeplane", "version": version("treeplane"), "rules": rules}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(driver, results)]}, indent=1) + "\n"


def _run(driver: Object, results: list[Object]) -> Object:
    return {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}


def _results(review: ChangeReview) -> Iterator[Object]:
    for error in review.errors():
        text = f"{error.message} ({error.hint})" if error.hint else error.message
        yield _result("held", "error", text, error.path, error.line, error.column)
    for warning in review.warnings:
        text = f"{warning.path}: {warning.text}" if warning.path else warning.text
        yield _result("warning", "warning", text, warning.file or _FLEET, 0, 0)


def _result(rule: str, level: str, text: str, file: str, line: int, column: int) -> Object:
    region = {"startLine": max(line, 1)} | ({"startColumn": column} if column else {})
    place = {"artifactLocation": {"uri": quote(file, errors="surrogatepass")}, "region": region}
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": _unlinked(plain(text))},
        "locations": [{"physicalLocation": place}],
    }


def _unlinked(text: str) -> str:
    """A link in a message is written in brackets."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")

"""How a scalar is written in YAML so that every reader of it (YAML 1.1, YAML 1.2, kubectl) reads it back as it was.

Called by dump and patch. The other direction is apiserver/kubeyaml/scalars.
"""

from __future__ import annotations

import json
import re
from typing import Any

from apiserver.kubeyaml import scalars

_WORDS = frozenset(("", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<"))
"""Words that some YAML reads as something other than text, in lower case."""
_NUMBER = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F_]*|0[oO][0-7_]*|0[bB][01_]*|\.(inf|Inf|INF|nan|NaN|NAN)"
    r"|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"  # base 60
    r"|(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9_]+)?)"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?")
_MARKS = frozenset("!&*|>'\"%@`#,[]{}?:")
"""What a plain scalar does not begin with. (A dash may, before something that is no space.)"""
_UNCLEAR = re.compile(r":(\s|$)|\s#|[\t\n]")
_FLOW = re.compile(r"[,\[\]{}:]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What may only stand in double quotes, escaped: what YAML forbids, and what some readers take for line breaks."""
_STEP = 2


def scalar(value: Any, *, flow: bool = False, style: str | None = None) -> str:
    """A scalar on one line. `style` is the quotation mark to use where that is possible; `flow`: within [] or {}."""
    if not isinstance(value, str):
        return as_json(value)
    if style == "'" and _quotable(value):
        return _single(value)
    if style == '"':
        return as_json(value)
    if is_plain(value) and not (flow and _FLOW.search(value)):
        return value
    if ('"' in value or "\\" in value) and _quotable(value):
        return _single(value)
    return as_json(value)


def as_json(value: Any, **style: Any) -> str:
    """JSON that is YAML as well: characters stand as they are, but for those that YAML forbids."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, **style)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def is_plain(text: str) -> bool:
    """Whether a text means itself without quotation marks."""
    if text.lower() in _WORDS or text[0] in _MARKS or text != text.strip() or _UNCLEAR.search(text):
        return False
    if text[0] == "-" and text[1:2] in ("", " ", "-") and not re.match(r"--[^\s-]", text):
        return False
    if _UNPRINTABLE.search(text) or _NUMBER.fullmatch(text) or _DATE.fullmatch(text) or text.startswith("..."):
        return False
    return scalars.plain(text) == text


def literal(text: str, column: int, step: int = _STEP) -> tuple[str, list[str]] | None:
    """A text of several lines as a block: what stands behind the key, and the lines below; None where that cannot be.

    `column` is the one of the mapping's keys or the sequence's dashes that the text stands under.
    """
    body = text.rstrip("\n")
    if "\n" not in text or not body.strip() or _UNPRINTABLE.search(text) or not body.rsplit("\n", 1)[-1].strip():
        return None
    ends = len(text) - len(body)
    indicator = str(step) if body[0] in " \t\n" else ""
    pad = " " * (column + step)
    lines = [pad + line if line else "" for line in body.split("\n")]
    return "|" + indicator + ("-", "", "+")[min(ends, 2)], lines + [""] * (ends - 1)


def _quotable(text: str) -> bool:
    return "\n" not in text and not _UNPRINTABLE.search(text)


def _single(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

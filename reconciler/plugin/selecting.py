"""Label selectors as they are typed (`region=eu,tier in (a,b),!old`), for objects that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.plugin.client import Object
from reconciler.plugin.errors import USAGE, PluginError

_PART = re.compile(
    r"\s*(?:(?P<absent>!)\s*)?(?P<key>[^\s,=!()]+)\s*"
    r"(?:(?P<sign>==|=|!=)\s*(?P<value>[^\s,=!()]*)|(?P<word>in|notin)\s*\((?P<values>[^()]*)\))?\s*(?:,|$)"
)
_OPERATORS = {"!=": "NotIn", "in": "In", "notin": "NotIn"}


def label_selector(text: str) -> Object:
    """With matchLabels for what equals, and matchExpressions for the rest. What keys and values may be is the server's
    to say. Raises PluginError."""
    labels: dict[str, str] = {}
    expressions: list[Object] = []
    for part in _parts(text):
        key, sign = part["key"], part["sign"] or part["word"]
        if sign in ("=", "=="):
            labels[key] = part["value"]
        elif sign is None:
            expressions.append({"key": key, "operator": "DoesNotExist" if part["absent"] else "Exists"})
        else:
            values = [part["value"]] if part["sign"] else [each.strip() for each in part["values"].split(",")]
            expressions.append({"key": key, "operator": _OPERATORS[sign], "values": values})
    return {
        **({"matchLabels": labels} if labels else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }


def _parts(text: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or (part["absent"] and (part["sign"] or part["word"])):
            raise PluginError(f"invalid location selector: {text!r} from character {at + 1}: {text[at:]!r}", USAGE)
        yield part
        at = part.end()

"""Quantities (`500m`, `1Gi`): numbers become strings, as Kubernetes stores them, and what is none is an error."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry.schemas import QUANTITY
from apiserver.schema import messages
from apiserver.schema.node import Node

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?", re.ASCII)
_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

_holding: dict[int, tuple[Node, bool]] = {}


def parse(text: str | float) -> Decimal:
    """The number that a quantity stands for. Raises ValueError."""
    match = _FORM.fullmatch(str(text))
    if match is None:
        raise ValueError(_TEXT)
    number, suffix, exponent = match.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""])


def text_of(value: float) -> str:
    """A JSON number as a quantity: 2 → `2`, 0.5 → `500m`."""
    number = Decimal(str(value))
    for suffix in ("", "m", "u"):
        scaled = number / _SUFFIXES[suffix]
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return f"{int((number / _SUFFIXES['n']).to_integral_value())}n"


def normalise(value: Any, node: Node, path: str = "") -> list[Cause]:
    """Turns numbers below `value` (whose JSON types are right) into strings, in place; gives what is no quantity."""
    if not _holds(node):
        return []
    causes: list[Cause] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        child = node.child(key) if isinstance(value, dict) else node.items
        if child is None:
            continue
        at = f"{path}[{key}]" if isinstance(value, list) or key not in node.properties else f"{path}.{key}".lstrip(".")
        if child.name == QUANTITY:
            if isinstance(item, int | float) and not isinstance(item, bool):
                value[key] = text_of(item)
            elif not isinstance(item, str) or not _FORM.fullmatch(item):
                causes.append(messages.invalid(at, item, _TEXT))
        else:
            causes += normalise(item, child, at)
    return causes


def _holds(node: Node) -> bool:
    """Whether there is a quantity somewhere below the node. (Schemas may contain themselves.)"""
    found = _holding.get(id(node))
    if found is not None:
        return found[1]
    _holding[id(node)] = (node, False)
    children = [*node.properties.values(), *(c for c in (node.additional, node.items) if c is not None)]
    result = any(child.name == QUANTITY or _holds(child) for child in children)
    _holding[id(node)] = (node, result)
    return result

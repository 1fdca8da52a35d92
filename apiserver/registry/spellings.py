"""Values that Kubernetes' own kinds write in one way, whatever a client sent: quantities, and bytes as base64.

Called by strategy.py for every object of a built-in kind, after its JSON types were found right.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry.quantities import canonical
from apiserver.registry.schemas import QUANTITY
from apiserver.schema import messages
from apiserver.schema.node import Node

_BREAKS = str.maketrans("", "", "\r\n")
_holding: dict[int, tuple[Node, bool]] = {}


def normalise(value: Any, node: Node, path: str = "") -> list[Cause]:
    """Writes what is below `value` as Kubernetes does, in place; gives the quantities that are none. In maps of
    resources quantities keep thousandths."""
    if not _holds(node):
        return []
    causes: list[Cause] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        child = node.child(key) if isinstance(value, dict) else node.items
        if child is None or not _concerned(child):
            continue
        at = f"{path}[{key}]" if isinstance(value, list) or key not in node.properties else f"{path}.{key}".lstrip(".")
        if child.name == QUANTITY:
            try:
                value[key] = canonical("" if isinstance(item, bool) else str(item), milli=child is node.additional)
            except ValueError as error:
                causes.append(messages.invalid(at, item, str(error)))
        elif child.format == "byte":
            if isinstance(item, str) and ("\n" in item or "\r" in item):
                value[key] = item.translate(_BREAKS)
        else:
            causes += normalise(item, child, at)
    return causes


def _concerned(node: Node) -> bool:
    return node.name == QUANTITY or node.format == "byte" or _holds(node)


def _holds(node: Node) -> bool:
    """Whether there is such a value somewhere below the node. (Schemas may contain themselves.)"""
    found = _holding.get(id(node))
    if found is not None:
        return found[1]
    _holding[id(node)] = (node, False)
    children = [*node.properties.values(), *(c for c in (node.additional, node.items) if c is not None)]
    result = any(_concerned(child) for child in children)
    _holding[id(node)] = (node, result)
    return result

"""YAML in request bodies: read as Kubernetes reads it, and searched for keys that stand twice.

Called by bodies.py only. How YAML is read, and what is refused for the process's sake, is apiserver/kubeyaml's matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from apiserver.kubeyaml import document, scalars
from apiserver.kubeyaml.faults import Fault
from apiserver.kubeyaml.nodes import PLAIN, Node, nodes
from apiserver.model.errors import bad_request

CONVERTING = "error converting YAML to JSON: "
_ERRORS = "yaml: unmarshal errors:"


def load(body: bytes) -> Any:
    """The first document. Of keys that stand twice the last counts. Raises StatusError 400."""
    try:
        return document.first(body)
    except Fault as fault:
        place = f"line {fault.line}: " if fault.line else ""
        raise bad_request(f"{CONVERTING}{place}{fault.message}") from None


def _root(body: bytes) -> Node | None:
    return next(iter(nodes(body, resolving=False)), None)


def lines(text: str) -> list[str]:
    """What `repeated` says as warnings, one for each line; another text by itself."""
    told = text.removeprefix(CONVERTING).removeprefix(_ERRORS)
    return [line.strip() for line in told.strip().splitlines()] if told != text else [text]


def repeated(body: bytes) -> str:
    """The keys that stand twice in one mapping, in the words of Go's YAML library, which names the line of the later
    value; "" if there are none. `body` is one that `load` has read."""
    found: list[tuple[int, str]] = []
    waiting, seen = [_root(body)], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            waiting += [value for _, value in node.value]
            found += _twice(node)
    told = "".join(f"\n  line {line}: key {key} already set in map" for line, key in sorted(found))
    return f"{_ERRORS}{told}" if told else ""


def _twice(node: yaml.MappingNode) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            text = key.tag != PLAIN or isinstance(scalars.plain(key.value), str)
            yield value.start_mark.line + 1, f'"{key.value}"' if text else key.value
        seen.add(key.value)

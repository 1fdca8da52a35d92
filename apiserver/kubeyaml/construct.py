"""Values of node trees, with every fault that leaves the rest readable collected. Called by readers."""

from __future__ import annotations

import base64
from typing import Any

from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from apiserver.kubeyaml import scalars
from apiserver.kubeyaml.faults import Fault, Twice, too_deep
from apiserver.kubeyaml.nodes import PLAIN, QUOTED, BadScalar, Node
from apiserver.model.nesting import DEPTH


def resolved(node: Any, faults: list[Fault], depth: int = 0) -> Any:
    """The value of a node whose scalars have their values as tags. The hot path of every load."""
    kind = type(node)
    if kind is ScalarNode:
        value = node.tag
        return value if type(value) is not BadScalar else _bad(node, faults)
    if depth >= DEPTH:
        raise too_deep(node.start_mark)
    if kind is SequenceNode:
        return [resolved(item, faults, depth + 1) for item in node.value]
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        name = key_node.tag
        if type(name) is not str or type(key_node) is not ScalarNode:
            name = _key(key_node, name, faults)
        if name in out:
            faults.append(Twice(key_node.start_mark, name))
        out[name] = resolved(value_node, faults, depth + 1)
    return out


class Construction:
    """Makes one document's value of nodes with tags, anchors and merge keys.

    An aliased node is made anew wherever it is used, so that no two places of a document share a dict; the characters
    that this adds up to are limited, which also ends aliases that contain themselves.
    """

    def __init__(self, faults: list[Fault], budget: int) -> None:
        self._faults = faults
        self._budget = budget

    def value(self, node: Any, depth: int = 0) -> Any:
        kind = type(node)
        self._budget -= len(node.value) + 1 if kind is ScalarNode else 2
        if self._budget < 0:
            raise Fault(node.start_mark, "aliases make this document too large", "write it out")
        if kind is ScalarNode:
            return self._scalar(node)
        if depth >= DEPTH:
            raise too_deep(node.start_mark)
        if kind is SequenceNode:
            return [self.value(item, depth + 1) for item in node.value]
        return self._mapping(node, depth)

    def _mapping(self, node: MappingNode, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        merged: set[str] = set()
        for key_node, value_node in node.value:
            if key_node.tag in (PLAIN, "tag:yaml.org,2002:merge") and key_node.value == "<<":
                merged |= self._merge(out, value_node, depth)
                continue
            value = self._scalar(key_node) if type(key_node) is ScalarNode else None
            name = value if isinstance(value, str) else _key(key_node, value, self._faults)
            if name in out and name not in merged:
                self._faults.append(Twice(key_node.start_mark, name))
            merged.discard(name)
            out[name] = self.value(value_node, depth + 1)
        return out

    def _scalar(self, node: ScalarNode) -> Any:
        tag, text = node.tag, node.value
        if tag == QUOTED:
            return text
        try:
            if tag == PLAIN:
                return scalars.plain(text)
            if tag == "tag:yaml.org,2002:binary":
                return _binary(text)
            return scalars.tagged(tag, text)
        except ValueError as error:
            self._faults.append(Fault(node.start_mark, str(error)))
            return None

    def _merge(self, out: dict[str, Any], node: Node, depth: int) -> set[str]:
        """Merge keys take effect where they stand: they overwrite what came before, and what follows overwrites."""
        sources = node.value[::-1] if isinstance(node, SequenceNode) else [node]
        names: set[str] = set()
        for source in sources:
            if not isinstance(source, MappingNode):
                raise Fault(source.start_mark, "<< merges a mapping or a list of mappings")
            found = self.value(source, depth + 1)
            out.update(found)
            names |= found.keys()
        return names


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError as error:
        raise ValueError("!!binary holds base64 of UTF-8 text, and this is not") from error


def _bad(node: Any, faults: list[Fault]) -> None:
    faults.append(Fault(node.start_mark, node.tag.message))


def _key(node: Any, value: Any, faults: list[Fault]) -> str:
    if type(node) is not ScalarNode:
        faults.append(Fault(node.start_mark, "a key must be text, not a list or a mapping"))
        return ""
    try:
        return scalars.key(value)
    except ValueError:
        what = "null" if value is None else node.value
        faults.append(Fault(node.start_mark, f"a key must be text, not {what}", "write it in quotes"))
        return str(node.value)

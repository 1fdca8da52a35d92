"""Where the parts of a YAML document stand in its text: keys, dashes, values and the ends of each.

Called by patch. libyaml's marks tell where a value begins, but a block's end only as the beginning of what follows it;
here a block ends with its last value, so that comments behind it are nobody's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from apiserver.kubeyaml import scalars
from apiserver.kubeyaml.nodes import Node
from reconciler.layout.textlines import column

_COLON = re.compile(r"[ \t]*:(?=\s|$)")
_FLOW_COLON = re.compile(r"\s*:")
_DASH = re.compile(r"\n[ \t]*(-)(?=\s|$)")
_FIRST_DASH = re.compile(r"(?:\A|\n)?[ \t]*(-)(?=\s|$)")
_ALIAS = re.compile(r"\s*(\*[^\s,\[\]{}]+)")


Splice = tuple[int, int, str]
"""text[start:end] becomes this."""


class Unclear(Exception):
    """The text is written in a way that cannot be edited in place."""


@dataclass(slots=True)
class YamlEntry:
    """A key with its value, or an item with its dash.

    `name` is the key as the reader has it, None for a merge key and for items. The entry begins at `start`, its value
    stands behind `after` (the colon or dash) and begins at `begin`. `alias` is the end of an alias in the value's
    place, whose own node stands elsewhere.
    """

    text: str
    name: str | None
    node: Node
    start: int
    after: int
    begin: int
    alias: int | None = None

    @property
    def end(self) -> int:
        """Where the value ends."""
        return self.alias if self.alias is not None else end_of(self.text, self.node)


def entries(text: str, node: Node) -> list[YamlEntry]:
    """The entries of a collection. Raises Unclear."""
    if isinstance(node, MappingNode):
        colon = _FLOW_COLON if is_flow(node) else _COLON
        return [_keyed(text, key, value, colon) for key, value in node.value]
    if is_flow(node):
        return _flow_items(text, node)
    return _items(text, node)


def spliced(text: str, splices: list[Splice]) -> str:
    """The text after the splices. Where two insertions meet, the earlier in the list stands first."""
    out: list[str] = []
    at = 0
    for start, end, new in sorted(splices, key=lambda s: s[:2]):
        if start < at:
            raise Unclear
        out += [text[at:start], new]
        at = end
    return "".join([*out, text[at:]])


def is_flow(node: Node) -> bool:
    """Whether a collection is written within [] or {}."""
    return bool(getattr(node, "flow_style", False))


def end_of(text: str, node: Node) -> int:
    """Where the last value in a node ends, without the line break behind it."""
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        return _end_of_block(text, node)
    if isinstance(node, ScalarNode) or is_flow(node) or not node.value:
        return int(node.end_mark.index)
    last: Any = node.value[-1]
    if isinstance(node, MappingNode):
        return _keyed(text, last[0], last[1], _COLON).end
    if last.start_mark.index >= node.start_mark.index:
        return end_of(text, last)
    return entries(text, node)[-1].end


def _end_of_block(text: str, node: Any) -> int:
    begin, end = node.start_mark.index, node.end_mark.index
    block = text[begin:end]
    header, _, _ = block.partition("\n")
    if "+" in header.split("#")[0]:
        return int(end) - 1 if block.endswith("\n") else int(end)
    return int(begin) + len(block.rstrip(" \t\r\n"))


def _keyed(text: str, key: Any, value: Node, colon: re.Pattern[str]) -> YamlEntry:
    start = key.start_mark.index
    found = colon.match(text, key.end_mark.index)
    if not isinstance(key, ScalarNode) or found is None:
        raise Unclear
    name = None if key.value == "<<" and not key.style else _name(key)
    return _entry(text, name, value, start, found.end())


def _name(key: Any) -> str:
    try:
        return scalars.key(scalars.plain(key.value)) if not key.style else str(key.value)
    except ValueError as error:
        raise Unclear from error


def _entry(text: str, name: str | None, node: Node, start: int, after: int) -> YamlEntry:
    if node.start_mark.index >= after:
        return YamlEntry(text, name, node, start, after, node.start_mark.index)
    found = _ALIAS.match(text, after)
    if found is None:
        raise Unclear
    return YamlEntry(text, name, node, start, after, found.start(1), found.end(1))


def _items(text: str, node: Any) -> list[YamlEntry]:
    out: list[YamlEntry] = []
    at = node.start_mark.index
    for item in node.value:
        found = (_DASH if out else _FIRST_DASH).search(text, at)
        if found is None:
            raise Unclear
        out.append(_entry(text, None, item, found.start(1), found.end(1)))
        at = out[-1].end
    return out


def _flow_items(text: str, node: Any) -> list[YamlEntry]:
    out: list[YamlEntry] = []
    for item in node.value:
        begin = item.start_mark.index
        if begin < (out[-1].end if out else node.start_mark.index):
            raise Unclear  # an alias
        out.append(YamlEntry(text, None, item, begin, begin, begin))
    return out


def indented(text: str, node: Node) -> bool | None:
    """Whether sequences below stand deeper than their keys, by the first one; None when there is none."""
    if isinstance(node, ScalarNode) or is_flow(node):
        return None
    for entry in entries(text, node):
        if entry.alias is not None:
            continue
        child = entry.node
        if isinstance(node, MappingNode) and isinstance(child, SequenceNode) and not is_flow(child):
            return column(text, _items(text, child)[0].start) > column(text, entry.start)
        found = indented(text, child)
        if found is not None:
            return found
    return None

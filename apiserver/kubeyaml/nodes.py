"""libyaml's node trees. Called by construct.py and by readers.

Most files have neither tags nor anchors. For those the parser resolves a scalar's type while it composes and leaves the
value in the node's `tag`: one dictionary look-up a scalar, and half the time of the general way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.nodes import ScalarNode

from apiserver.kubeyaml import scalars
from apiserver.kubeyaml.faults import too_deep
from apiserver.model.nesting import DEPTH

Node = yaml.Node
PLAIN, QUOTED = "?", "!"
"""The tags that `nodes` gives to scalars without one."""
_CROWDED = 400
"""From so many opening marks on, nesting is measured before the file is read."""
_CACHE_SIZE, _CACHE_TEXT = 8192, 64
_values: dict[str, Any] = {}


class BadScalar:
    """Stands in a node's tag for a scalar that JSON cannot hold."""

    def __init__(self, message: str) -> None:
        self.message = message


class _Parser(CParser):
    """libyaml's parser and composer, with our own meaning of scalars without a tag."""

    def __init__(self, data: bytes) -> None:
        CParser.__init__(self, data)

    def resolve(self, kind: type, _value: Any, implicit: Any) -> str:
        return (PLAIN if implicit[0] else QUOTED) if kind is ScalarNode else ""

    def descend_resolver(self, _parent: Any, _index: Any) -> None:
        """PyYAML's path resolvers are not used."""

    def ascend_resolver(self) -> None:
        """As above."""


class _Resolving(_Parser):
    def resolve(self, kind: type, value: Any, implicit: Any) -> Any:
        if kind is not ScalarNode or not implicit[0]:
            return value
        try:
            return _values[value]
        except KeyError:
            return _remember(value)


def is_simple(data: bytes) -> bool:
    """Whether a file has no tags, anchors, aliases or merge keys, so that `nodes` may resolve."""
    return b"!" not in data and b"&" not in data and b"*" not in data and b"<<" not in data


def nodes(data: bytes, *, resolving: bool) -> Iterator[Node]:
    """The root node of each document. `resolving`: scalars have their value (or a BadScalar) as tag.

    Raises yaml.YAMLError, and Fault for nesting that libyaml's composer would not survive.
    """
    if data.count(b"[") + data.count(b"{") > _CROWDED or data.count(b"- ") + data.count(b"? ") > _CROWDED:
        _measure_depth(data)
    parser = _Resolving(data) if resolving else _Parser(data)
    try:
        while parser.check_node():
            node = parser.get_node()
            if node is not None:
                yield node
    finally:
        parser.dispose()


def _measure_depth(data: bytes) -> None:
    """The composer recurses in C without a limit of its own and takes the process with it; events do not recurse, so a
    file that could be deep is measured by its events first. (The file's size bounds depth by indentation alone.)"""
    parser = _Parser(data)
    depth = 0
    try:
        while parser.check_event():
            event = parser.get_event()
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEPTH:
                    raise too_deep(event.start_mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    finally:
        parser.dispose()


def _remember(text: str) -> Any:
    value: Any
    try:
        value = scalars.plain(text)
    except ValueError as error:
        value = BadScalar(str(error))
    if len(text) <= _CACHE_TEXT:
        if len(_values) >= _CACHE_SIZE:
            _values.clear()
        _values[text] = value
    return value

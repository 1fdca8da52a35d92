"""A file's documents as SOPS walks through them: values in their order, each with the keys that lead to it.

Called by document. What the values mean to kubectl is apiserver/kubeyaml's to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from apiserver.kubeyaml import scalars as kubectl
from apiserver.kubeyaml.faults import Fault, syntax
from apiserver.kubeyaml.nodes import PLAIN, QUOTED, Node, nodes
from reconciler.encryption.faults import UnfitFile
from reconciler.encryption.metadata import KEY
from reconciler.encryption.scalars import Scalar, plain

Path = tuple[str, ...]
_MERGE = "<<"


class Leaf(NamedTuple):
    """`value`: as SOPS reads it where it is not encrypted; None: nothing. `here`: as kubectl reads it."""

    path: Path
    value: Scalar | None
    here: Any
    line: int


Read = Callable[[Leaf], Any]
"""What stands for a leaf in a document's value."""


class Documents:
    """Of one file. `json`: it is JSON, where a number is never an integer to SOPS."""

    def __init__(self, data: bytes, *, json: bool) -> None:
        """Raises UnfitFile."""
        self._json = json
        try:
            self._roots = [node for node in nodes(data, resolving=False) if not _is_nothing(node)]
        except Fault as fault:
            raise UnfitFile(fault.message, fault.hint, fault.line) from None
        except yaml.YAMLError as error:
            wrong = syntax(error, data)
            raise UnfitFile(wrong.message, wrong.hint, wrong.line) from None
        self._seen: set[int] = set()

    def metadata(self) -> Any:
        """What stands under `sops` in the first document, texts as they are written; None where nothing does."""
        root = self._roots[0] if self._roots else None
        found = (value for key, value in root.value if key.value == KEY) if isinstance(root, MappingNode) else ()
        node = next(iter(found), None)
        return self._value(node, (), lambda leaf: leaf.value.text if leaf.value is not None else None) if node else None

    def values(self, read: Read) -> list[dict[str, Any]]:
        """Each document without `sops`, its leaves as `read` gives them, which is called in their order."""
        self._seen.clear()
        out = []
        for root in self._roots:
            if not isinstance(root, MappingNode):
                raise UnfitFile("a document that SOPS encrypted is a mapping", "", root.start_mark.line + 1)
            out.append(self._mapping(root, (), read, without=KEY))
        return out

    def _value(self, node: Node, path: Path, read: Read) -> Any:
        if isinstance(node, ScalarNode):
            return read(self._leaf(node, path))
        if id(node) in self._seen:
            raise UnfitFile(
                "an encrypted file has no aliases", "write out what they stand for", node.start_mark.line + 1
            )
        self._seen.add(id(node))
        if isinstance(node, SequenceNode):
            return [self._value(item, path, read) for item in node.value]
        return self._mapping(node, path, read)

    def _mapping(self, node: Any, path: Path, read: Read, without: str = "") -> dict[str, Any]:
        out = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.tag not in (PLAIN, QUOTED) or key.value == _MERGE:
                raise UnfitFile("a key is no text", "", key.start_mark.line + 1)
            name = kubectl.key(kubectl.plain(key.value)) if key.tag == PLAIN else key.value
            if not without or name != without:
                out[name] = self._value(value, (*path, key.value), read)
        return out

    def _leaf(self, node: ScalarNode, path: Path) -> Leaf:
        line = node.start_mark.line + 1
        if node.tag == QUOTED:
            return Leaf(path, Scalar("str", node.value), node.value, line)
        if node.tag != PLAIN:
            raise UnfitFile("an encrypted file has no tags", "put bytes into data, in base64", line)
        try:
            return Leaf(path, plain(node.value, json=self._json), kubectl.plain(node.value), line)
        except ValueError as error:
            raise UnfitFile(str(error), "", line) from None


def _is_nothing(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.tag == PLAIN and kubectl.plain(node.value) is None

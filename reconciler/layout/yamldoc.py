"""Reads YAML and JSON files exactly as kubectl does, on libyaml's parser, and says where each fault is.

Called by manifest and fleet. No library on the package index reads as kubectl does; apiserver/kubeyaml does, and
refuses what could hurt the process that reads it: aliases that multiply, nesting without end. Size is bounded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, SequenceNode

from apiserver.kubeyaml.construct import Construction, resolved
from apiserver.kubeyaml.faults import Fault, syntax, too_deep
from apiserver.kubeyaml.nodes import Node, is_simple, nodes
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.faults import placed, type_name
from reconciler.layout.jsondoc import NotOne, read_json

LIMIT = 3 * 1024 * 1024
"""Bytes of a file, and characters of a document once its aliases are written out."""


@dataclass(slots=True)
class YamlDocument:
    """One object. `line` is where it begins, from 1. `node` is kept only when positions were asked for."""

    value: dict[str, Any]
    line: int
    node: Node | None = None


def parse(data: bytes, path: str, *, positions: bool = False) -> list[YamlDocument]:
    """The objects of a file, lists expanded, empty documents left out. `path` decides between JSON and YAML.

    Raises BadFile with every fault found. With `positions` a document can tell the lines of its fields (`line_of`).
    """
    documents = roots(data, path, positions=positions)
    if any(is_list(document.value) for document in documents):
        return [item for document in documents for item in _expand(document, path)]
    return documents


def roots(data: bytes, path: str, *, positions: bool = False) -> list[YamlDocument]:
    """As `parse`, but a list is one document."""
    text = _checked(data, path)
    if not path.endswith(".json") or positions:
        return _read_yaml(data, path, positions)
    try:
        return [YamlDocument(value, line) for value, line in read_json(text, path)]
    except NotOne as error:
        _read_yaml(data, path, False)  # YAML is a superset of JSON: this raises with the place
        raise BadFile([LayoutError(path, 0, 0, f"JSON: {error}")]) from error


def locate(data: bytes, index: int, field: str, path: str = "file.yaml") -> int:
    """The line of `field` (`spec.containers[0].name`) in the file's object number `index`, counting from 0.

    Of the nearest field around it when it is absent; 0 when the file cannot be read.
    """
    try:
        documents = parse(data, path, positions=True)
    except BadFile:
        return 0
    return line_of(documents[index], field) if 0 <= index < len(documents) else 0


def line_of(document: YamlDocument, field: str) -> int:
    """As `locate`, of a document that was read with positions."""
    node, line, rest = document.node, document.line, field
    while rest and node is not None:
        found = _child(node, rest)
        if found is None:
            break
        line, node, rest = found
    return line


def _child(node: Node, rest: str) -> tuple[int, Node, str] | None:
    """(line, node, what remains of the field) one step down, by the longest key that matches."""
    best: tuple[int, Node, str] | None = None
    taken = 0
    if isinstance(node, SequenceNode):
        number, bracket, after = rest.removeprefix("[").partition("]")
        if rest.startswith("[") and bracket and number.isdigit() and int(number) < len(node.value):
            item = node.value[int(number)]
            best = (item.start_mark.line + 1, item, after)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            for form in (f".{key.value}", f"{key.value}", f"[{key.value}]"):
                after = rest[len(form) :]
                if rest.startswith(form) and (not after or after[0] in ".[") and len(form) > taken:
                    best, taken = (key.start_mark.line + 1, value, after), len(form)
    return best


def _checked(data: bytes, path: str) -> str:
    if len(data) > LIMIT:
        raise BadFile([LayoutError(path, 0, 0, f"{len(data)} bytes; a file has at most 3 MiB", "split the file")])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"invalid UTF-8: byte 0x{data[error.start]:02x}"
        raise BadFile([LayoutError(path, line, column, message, "save the file as UTF-8")]) from error


def _read_yaml(data: bytes, path: str, positions: bool) -> list[YamlDocument]:
    documents: list[YamlDocument] = []
    faults: list[Fault] = []
    simple = is_simple(data)
    try:
        for node in nodes(data, resolving=simple):
            value = resolved(node, faults) if simple else Construction(faults, LIMIT).value(node)
            if isinstance(value, dict):
                kept = node if positions or is_list(value) else None
                documents.append(YamlDocument(value, node.start_mark.line + 1, kept))
            elif value is not None:
                raise Fault(node.start_mark, f"an object is a mapping, this is {type_name(value)}")
    except Fault as fault:
        faults.append(fault)
    except RecursionError:
        faults.append(too_deep(None))
    except yaml.YAMLError as error:
        faults.append(syntax(error, data))
    if faults:
        raise BadFile([placed(f, path) for f in faults])
    return documents


def is_list(value: dict[str, Any]) -> bool:
    """Whether an object stands for its items."""
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)


def _expand(document: YamlDocument, path: str) -> list[YamlDocument]:
    """The items of a `kind: List` (or `ConfigMapList`, whose items may leave out what the list's kind says)."""
    value = document.value
    if not is_list(value):
        return [document]
    places = _item_nodes(document.node)
    out: list[YamlDocument] = []
    for number, item in enumerate(value["items"]):
        node = places[number] if number < len(places) else None
        line = node.start_mark.line + 1 if node is not None else document.line
        if not isinstance(item, dict):
            message = f"items[{number}] must be an object, not {type_name(item)}"
            raise BadFile([LayoutError(path, line, 0, message)])
        out += _expand(YamlDocument(listed(value, item), line, node), path)
    return out


def listed(value: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """The object that an item of this list stands for."""
    if value["kind"] == "List":
        return item
    return {"apiVersion": value.get("apiVersion"), "kind": value["kind"].removesuffix("List"), **item}


def _item_nodes(node: Node | None) -> list[Node]:
    if not isinstance(node, MappingNode):
        return []
    for key, value in node.value:
        if key.value == "items" and isinstance(value, SequenceNode):
            return list(value.value)
    return []

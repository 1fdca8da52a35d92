"""YAML in request bodies: read as JSON's superset, as Kubernetes reads it, and searched for keys that stand twice.

Called by bodies.py only. Times stay text; aliases are refused, since a few lines of them may stand for gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from apiserver.model.errors import bad_request


class _Loader(yaml.CSafeLoader):
    """YAML as JSON's superset: times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load(body: bytes) -> Any:
    """Raises StatusError 400."""
    try:
        if b"&" in body and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(body, Loader=_Loader)):
            raise bad_request("the object provided is unrecognized: YAML aliases are not supported")
        return yaml.load(body, Loader=_Loader)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None


def repeated(body: bytes) -> str:
    """The keys that stand twice in one mapping, in the words of Go's YAML library, which names the line of the later
    value; "" if there are none. `body` is one that `load` has read."""
    found: list[tuple[int, str]] = []
    nodes: list[yaml.Node | None] = [yaml.compose(body, Loader=_Loader)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
        elif isinstance(node, yaml.MappingNode):
            nodes += [value for _, value in node.value]
            found += _twice(node)
    lines = "".join(f"\n  line {line}: key {key} already set in map" for line, key in sorted(found))
    return f"yaml: unmarshal errors:{lines}" if lines else ""


def _twice(node: yaml.MappingNode) -> Iterator[tuple[int, str]]:
    seen: set[str] = set()
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        if key.value in seen:
            text = f'"{key.value}"' if key.tag == "tag:yaml.org,2002:str" else key.value
            yield value.start_mark.line + 1, text
        seen.add(key.value)

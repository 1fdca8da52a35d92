"""One compiled node of a schema: what the walkers read. Made by compile.py; no behaviour of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from apiserver.model.errors import Cause

Path = tuple[Any, ...] | None
"""Where a value stands: None at the root, else (path of the parent, key or index). Rendered only for an error."""

Check = Callable[[Any, Path, list[Cause]], None]
"""Appends the errors of a value to a list."""


class Absence:
    """The absence of a value, where None is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Absence()


def accept(value: Any, path: Path, errors: list[Cause]) -> None:
    """The check of a node without any restriction."""


class Node:
    """A schema node, shared by all schemas that contain the same text (see compile.py).

    `types` is empty where any JSON type is allowed, `("integer", "string")` for int-or-string. `properties` are a
    struct's fields (`defaulted` names those with a default), `additional` the schema of a map's values (None: no other
    keys are known). `plain` is the Python class whose instances need no further check, None where `check` must be
    called. `name` is the definition's, of built-in kinds only, and `nulls` the lists and maps among the fields that Go
    prints even where there are none, `omitted` the fields that it leaves out where they are empty.
    """

    __slots__ = (
        "__weakref__",
        "additional",
        "builtin",
        "check",
        "closed",
        "default",
        "defaulted",
        "embedded",
        "format",
        "int_or_string",
        "items",
        "list_type",
        "map_keys",
        "map_type",
        "name",
        "nullable",
        "nulls",
        "omitted",
        "plain",
        "preserve",
        "properties",
        "rules",
        "types",
    )

    def __init__(self) -> None:
        self.types: tuple[str, ...] = ()
        self.format = ""
        self.nullable = False
        self.properties: dict[str, Node] = {}
        self.additional: Node | None = None
        self.closed = False
        self.items: Node | None = None
        self.default: Any = MISSING
        self.defaulted: tuple[str, ...] = ()
        self.nulls: tuple[str, ...] = ()
        self.omitted: frozenset[str] = frozenset()
        self.int_or_string = False
        self.preserve = False
        self.embedded = False
        self.list_type = ""
        self.map_keys: tuple[str, ...] = ()
        self.map_type = ""
        self.rules: list[dict[str, Any]] = []
        self.name = ""
        self.builtin = False
        self.plain: type | None = None
        self.check: Check = accept

    def child(self, key: str) -> Node | None:
        """The schema of field `key`, declared or a map's value; None where nothing is known of it."""
        return self.properties.get(key) or self.additional

    @property
    def untyped(self) -> bool:
        """Whether values below are described by nothing but themselves."""
        described = self.properties or self.additional is not None or self.items is not None
        return not described and (self.preserve or not self.types)


def render(path: Path) -> str:
    """`spec.items[0].name`; keys of maps are written as fields are, as kube-apiserver does."""
    parts: list[str] = []
    while path is not None:
        path, key = path
        parts.append(f"[{key}]" if key.__class__ is int else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")

"""Compiled schemas: the one door to pruning, defaulting and validating objects.

Called by the registry's strategies (what is stored), by ownership.py (list types and map keys) and by the layout's
validation. A schema is compiled once per content and shared: `compile_schema` twice gives the same Schema.

    schema = compile_schema(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    unknown = schema.prune(obj)       # ["spec.nope"]
    schema.default(obj)
    errors = schema.validate(obj)     # [] when good
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any

from apiserver.model.errors import Cause
from apiserver.schema import decode, defaults, ratchet
from apiserver.schema import prune as pruning
from apiserver.schema.compile import Compiler, digest
from apiserver.schema.node import MISSING, Node

Json = dict[str, Any]

_CACHED = 2048


class Schema:
    """What a kind's objects look like. Immutable; safe to share between threads.

    `digest` is the hex SHA-256 of the schema's text. `builtin` schemas follow Go's decoding: `required` is not
    enforced, null is absent.
    """

    __slots__ = ("_has_embedded", "builtin", "digest", "has_defaults", "root")

    def __init__(self, root: Node, builtin: bool, content: str) -> None:
        self.root = root
        self.builtin = builtin
        self.digest = content
        self.has_defaults = not builtin and _any(root, lambda n: bool(n.defaulted) or n.default is not MISSING)
        self._has_embedded = not builtin and _any(root, lambda n: n.embedded)

    def prune(self, obj: Any) -> list[str]:
        """Drops unknown fields in place; their paths, sorted (`spec.items[0].x`).

        apiVersion, kind and metadata are always known; inside metadata a CRD's schema drops nothing.
        """
        return pruning.prune(obj, self.root)

    def unknown(self, obj: Any) -> list[str]:
        """What `prune` would drop; nothing is changed."""
        return pruning.unknown(obj, self.root)

    def embedded(self, obj: Any) -> Iterable[tuple[str, Json]]:
        """The whole objects that stand in a custom resource, each with its path (`spec.template`)."""
        return pruning.embedded(obj, self.root) if self._has_embedded else ()

    def default(self, obj: Any) -> None:
        """Fills in defaults and settles nulls, in place. Idempotent."""
        defaults.default(obj, self.root)

    def validate(self, obj: Any, path: str = "", old: Any = None) -> list[Cause]:
        """All errors of a pruned and defaulted object; `path` is put before each field. `old`: what it takes the place
        of; errors of what did not change do not count then."""
        errors: list[Cause] = []
        start = (None, path) if path else None
        self.root.check(obj, start, errors)
        return ratchet.new_errors(self.root, old, obj, start, errors) if errors and old is not None else errors

    def decode_errors(self, obj: Any, *, converted: bool = False) -> list[str]:
        """Values of the wrong type, in the words of Go's decoder (built-in kinds; a 400, before any validation), or of
        its conversion from values without a type."""
        return decode.decode_errors(obj, self.root, decode.CONVERTED if converted else decode.DECODED)

    def node(self, *steps: str | int) -> Node | None:
        """The node of a field: names for fields and map keys, any int for a list's items. None: nothing is known."""
        node: Node | None = self.root
        for step in steps:
            if node is None:
                return None
            node = node.items if isinstance(step, int) else node.child(step)
        return node


def _any(node: Node, found: Callable[[Node], bool]) -> bool:
    """Whether it is so of a node of a CRD's schema, which is a tree."""
    below = (*node.properties.values(), *(n for n in (node.additional, node.items) if n is not None))
    return found(node) or any(_any(n, found) for n in below)


_lock = Lock()
_schemas: OrderedDict[tuple[bytes, bool, int], Schema] = OrderedDict()
_compilers: dict[int, Compiler] = {}
_crds = Compiler(builtin=False)


def compile_schema(
    openapi: Json,
    *,
    builtin: bool = False,
    definitions: Mapping[str, Json] | None = None,
    omitted: Mapping[str, frozenset[str]] | None = None,
) -> Schema:
    """The compiled form of an OpenAPI v3 schema.

    `definitions` are what `$ref: "#/definitions/<name>"` refers to (built-in kinds); pass the same mapping each time,
    it is known by identity and kept. `omitted` goes with them (see Compiler). Raises KeyError for a reference to
    nothing.
    """
    content = digest(openapi)
    key = (content, builtin, id(definitions) if definitions is not None else 0)
    with _lock:
        found = _schemas.get(key)
        if found is not None:
            _schemas.move_to_end(key)
            return found
        root = _compiler(builtin, definitions, omitted).compile(openapi)
        schema = _schemas[key] = Schema(root, builtin, content.hex())
        if len(_schemas) > _CACHED:
            _schemas.popitem(last=False)
        return schema


def _compiler(
    builtin: bool, definitions: Mapping[str, Json] | None, omitted: Mapping[str, frozenset[str]] | None
) -> Compiler:
    if not builtin:
        return _crds
    key = id(definitions)
    compiler = _compilers.get(key)
    if compiler is None or (definitions is not None and compiler.definitions is not definitions):
        compiler = _compilers[key] = Compiler(True, definitions, omitted)
    return compiler

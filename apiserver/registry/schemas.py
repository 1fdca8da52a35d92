"""The schema of a served kind: as data and compiled, each made when first asked for.

A workspace serves some forty kinds and a request needs one, so nothing is compiled at start.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from apiserver.registry.facts import load
from apiserver.registry.facts.messages import omitted
from apiserver.schema.structural import Schema, compile_schema

OpenAPI = dict[str, Any]
REFERENCE = "#/components/schemas/"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

_FIELDS_V1 = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
_FREE: OpenAPI = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class SchemaSource:
    """A schema that is made when first used. `make` returns OpenAPI, nested for custom resources, a reference for
    Kubernetes' own kinds.

    `definition`: the name under which Kubernetes publishes it ("" for custom resources). `digest`: of the content.
    """

    __slots__ = ("_compiled", "_make", "_openapi", "definition", "digest")

    def __init__(self, make: Callable[[], OpenAPI], digest: str, definition: str = "") -> None:
        self._make = make
        self._openapi: OpenAPI | None = None
        self._compiled: Schema | None = None
        self.definition = definition
        self.digest = digest

    @property
    def openapi(self) -> OpenAPI:
        """Shared: not to be changed."""
        if self._openapi is None:
            self._openapi = self._make()
        return self._openapi

    @property
    def compiled(self) -> Schema:
        if self._compiled is None:
            if self.definition:
                self._compiled = compile_schema(
                    self.openapi, builtin=True, definitions=definitions(), omitted=omitted()
                )
            else:
                self._compiled = compile_schema(self.openapi)
        return self._compiled


def definitions() -> dict[str, OpenAPI]:
    """Kubernetes' own, by name. Shared: not to be changed."""
    found: dict[str, OpenAPI] = load.kubernetes()["definitions"]
    return found


def kubernetes_source(definition: str) -> SchemaSource:
    """Of a kind of Kubernetes' own, by the name of its definition."""
    digest = f"kubernetes-{load.kubernetes()['version']}/{definition}"
    return SchemaSource(lambda: {"$ref": REFERENCE + definition}, digest, definition)


def custom_source(schema: OpenAPI, digest: str) -> SchemaSource:
    """Of a custom resource: `schema` is what its definition says."""
    return SchemaSource(lambda: with_object_fields(schema), digest)


@cache
def metadata_schema() -> Schema:
    """Of metadata alone, as Go decodes it."""
    return compile_schema({"$ref": REFERENCE + OBJECT_META}, builtin=True, definitions=definitions(), omitted=omitted())


def with_object_fields(schema: OpenAPI) -> OpenAPI:
    """`schema` with apiVersion, kind and the whole of metadata, which every object has (field ownership needs the types
    of its lists). Restrictions that the schema puts on metadata.name and generateName stay."""
    metadata = _object_meta()
    declared = schema.get("properties", {}).get("metadata", {}).get("properties", {})
    names = [name for name in ("name", "generateName") if name in declared]
    if names:
        restricted = {name: {**metadata["properties"][name], **declared[name]} for name in names}
        metadata = {**metadata, "properties": {**metadata["properties"], **restricted}}
    properties = {
        **schema.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": metadata,
    }
    return {**schema, "type": "object", "properties": properties}


@cache
def _object_meta() -> OpenAPI:
    """ObjectMeta as one nested schema. Nothing in it is required or defaulted: what is missing is reported by
    metadata.check, in Kubernetes' words."""
    found: OpenAPI = _nested({"$ref": REFERENCE + OBJECT_META})
    return found


def _nested(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_nested(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    if reference is not None:
        name = reference.removeprefix(REFERENCE)
        return _FREE if name == _FIELDS_V1 else _nested(definitions()[name])
    return {k: _nested(v) for k, v in schema.items() if k not in ("required", "default")}

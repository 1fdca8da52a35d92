"""docs/kinds.md says of kinds what their schemas say, `kubectl explain` says the same, and nothing is left unsaid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.registry import kinds, openapi
from apiserver.registry.served import ServedKind
from reconciler.commands import schemarows
from reconciler.commands.kindspage import own_kinds, page
from reconciler.layout import schemas
from reconciler.layout.fleet import FleetConfig, parse_fleet
from reconciler.layout.sourceref import SourceRef, written_branch

PAGE = Path(__file__).parents[2] / "docs" / "kinds.md"
OWN = [kind for versions in own_kinds() for kind in versions]
NAMES = [f"{kind.kind}-{kind.version}" for kind in OWN]
FLEET: dict[str, Any] = {"apiVersion": "treeplane.dev/v1alpha1", "kind": "Fleet", "metadata": {"name": "f"}}


def test_the_page_is_made_of_the_schemas() -> None:
    assert page(PAGE.read_text()) == PAGE.read_text(), "make settings"


@pytest.mark.parametrize("kind", OWN, ids=NAMES)
def test_each_column_and_each_field_says_what_it_is(kind: ServedKind) -> None:
    assert [column.name for column in kind.columns if not column.description] == []
    assert schemarows.undescribed(explained(kind)) == []


def explained(kind: ServedKind) -> dict[str, Any]:
    """What `kubectl explain` reads of a kind, with what it refers to in place."""
    document = openapi.document(kinds.common_builtins(), kind.group, kind.version)["components"]["schemas"]

    def nested(schema: Any) -> Any:
        if isinstance(schema, list):
            return [nested(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        refers = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), "")
        if not refers:
            return {key: nested(value) for key, value in schema.items()}
        # Of what every object has, kubectl's own words are enough.
        return {"type": "object", **{key: value for key, value in schema.items() if key == "description"}}

    found: dict[str, Any] = nested(document[openapi.definition_name(kind)])
    return found


@pytest.mark.parametrize("name", ["fleet", "workspace"])
def test_each_field_of_a_file_says_what_it_is(name: str) -> None:
    assert schemarows.undescribed(schemas.schema(name)) == []


def defaults(schema: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Of each field that has one, by path."""
    for name, said in (schema.get("properties") or {}).items():
        if "default" in said:
            yield (name,), said["default"]
        yield from (((name, *path), value) for path, value in defaults(said))


def spelled_out(schema: dict[str, Any], *within: str, into: dict[str, Any]) -> dict[str, Any]:
    """`into`, with the defaults of what is below `within`."""
    found: dict[str, Any] = json.loads(json.dumps(into))
    for path, value in defaults(schema):
        if path[: len(within)] == within:
            place = found
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = value
    return found


def test_what_a_fleet_does_not_say_is_what_its_defaults_say() -> None:
    said = spelled_out(schemas.schema("fleet"), into=FLEET)
    assert said["spec"]["safety"]["maxDeletedShare"] == 30  # the reading itself works
    config = parse_fleet(json.dumps(said).encode())
    assert config == parse_fleet(json.dumps(FLEET).encode()) == FleetConfig(name="f")


def test_what_a_workspace_does_not_say_is_what_its_defaults_say() -> None:
    """Its status is not written unless it says so; then the branch has a default, too."""
    source = {"repository": "https://example.org/r", "branch": "main", "secretRef": {"name": "s"}}
    short = {"spec": {"source": source}}
    whole = spelled_out(schemas.schema("workspace"), "spec", "source", into=short)
    assert len(whole["spec"]["source"]) > len(source)
    assert SourceRef.of(whole) == SourceRef.of(short)
    assert written_branch(whole) == written_branch(short) == ""
    for each in (whole, short):
        each["spec"]["source"]["status"] = True
    assert written_branch(whole) == written_branch(short) != ""


def test_only_defaults_that_are_read_are_promised() -> None:
    """Those of a Fleet and of a source are compared above; there are no others."""
    found = [path for path, _ in defaults(schemas.schema("workspace"))]
    assert {path[:2] for path in found} == {("spec", "source")}


@pytest.mark.parametrize(
    ("schema", "type", "default", "allowed"),
    [
        ("{type: string, minLength: 1, maxLength: 9}", "string", "", "not empty, at most 9 characters"),
        ("{type: string, enum: ['', A, B], default: ''}", "string", '`""`', "empty, `A`, `B`"),
        ("{const: 1}", "integer", "", "`1`"),
        ("{x-kubernetes-preserve-unknown-fields: true}", "anything", "", ""),
        ("{items: {type: string, pattern: x}, minItems: 1}", "list of strings", "", "at least one, `x`"),
        ("{additionalProperties: {x-kubernetes-int-or-string: true}}", "map of integers or strings", "", ""),
        ("{type: string, format: date-time}", "string (date-time)", "", ""),
        ("{type: integer, format: int64, minimum: 0, default: 3}", "integer", "`3`", "at least 0"),
    ],
)  # fmt: skip
def test_a_row_says_what_the_schema_says(schema: str, type: str, default: str, allowed: str) -> None:
    [row] = schemarows.rows({"properties": {"x": yaml.safe_load(schema)}})
    assert row == ("`x`", type, default, allowed, "")


def test_what_is_required_and_what_is_within_a_list() -> None:
    items = {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}, "c": {"type": "string"}}}
    found = schemarows.rows({"properties": {"a": {"type": "array", "items": items}}})
    assert [(row.field, row.default) for row in found] == [("`a`", ""), ("`a[].b`", "required"), ("`a[].c`", "")]

"""Request bodies: JSON, YAML or Kubernetes' protobuf, read into an object.

No Content-Type means JSON (kubectl scale and the Python client send none). Fields that stand twice are noted, since a
client may ask for them to be refused.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
import yaml

from apiserver.endpoints import notjson, protobuf
from apiserver.model.errors import StatusError, bad_request, unsupported_media_type

Object = dict[str, Any]

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

_ACCEPTED = f"{JSON}, {YAML}, {PROTOBUF}"


def media_type(header: str) -> str:
    """A Content-Type header without its parameters."""
    return header.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, kind: str = "") -> tuple[Object, list[str]]:
    """The object of a POST or PUT, and the fields that stand twice in it (`data.x`). `kind`: which it should be of, for
    errors. Raises StatusError 400, 415."""
    match media_type(content_type):
        case "application/vnd.kubernetes.protobuf":
            return protobuf.decode(body), []
        case "application/yaml":
            return _of_object(_yaml(body), body, kind), []
        case "" | "application/json":
            return read_json(body, kind)
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
    )


def read_json(body: bytes, kind: str = "") -> tuple[Object, list[str]]:
    """Raises StatusError 400."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _unrecognized(notjson.reason(error), body, kind) from None
    return _of_object(found, body, kind), duplicates(body)


def read_apply(body: bytes) -> Object:
    """An apply patch is YAML by its media type and nearly always JSON. Raises StatusError 400."""
    if body.lstrip()[:1] == b"{":
        return read_json(body)[0]
    return _of_object(_yaml(body), body)


def read_patch(body: bytes) -> Any:
    """A merge or JSON patch. Raises StatusError 400."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"error decoding patch: {notjson.reason(error)}") from None


def _of_object(found: Any, body: bytes, kind: str = "") -> Object:
    if not isinstance(found, dict):
        raise _unrecognized("not an object", body, kind)
    return found


def _unrecognized(why: str, body: bytes, kind: str) -> StatusError:
    wanted = f" (must be of type {kind})" if kind else ""
    text = f"couldn't get version/kind; json parse error: {why} ({notjson.shown(body)})"
    return bad_request(f"the object provided is unrecognized{wanted}: {text}")


class _Twice(dict[str, Any]):
    """A JSON object that knows which of its fields stood twice."""

    twice: list[str]


def duplicates(body: bytes) -> list[str]:
    """Paths of the fields that stand twice in an object of `body`."""
    some = False

    def pairs(found: list[tuple[str, Any]]) -> Any:
        nonlocal some
        made = dict(found)
        if len(made) == len(found):
            return made
        some = True
        out = _Twice(made)
        names = [name for name, _ in found]
        out.twice = [name for name in made if names.count(name) > 1]
        return out

    parsed = json.loads(body, object_pairs_hook=pairs)
    return sorted(_paths(parsed, "")) if some else []


def _paths(value: Any, path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, dict):
        if isinstance(value, _Twice):
            found += [f"{path}{name}" for name in value.twice]
        for name, below in value.items():
            found += _paths(below, f"{path}{name}.")
    elif isinstance(value, list):
        for i, below in enumerate(value):
            found += _paths(below, f"{path.rstrip('.')}[{i}].")
    return found


class _Loader(yaml.CSafeLoader):
    """YAML as JSON's superset: times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _yaml(body: bytes) -> Any:
    try:
        if b"&" in body and any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(body, Loader=_Loader)):
            raise bad_request("the object provided is unrecognized: YAML aliases are not supported")
        return yaml.load(body, Loader=_Loader)  # noqa: S506 (a safe loader)
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise bad_request(f"error converting YAML to JSON: {error}") from None

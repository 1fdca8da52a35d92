"""Request bodies: JSON, YAML or Kubernetes' protobuf, read into an object.

No Content-Type means JSON (kubectl scale and the Python client send none). Fields that stand twice are looked for
apart, since whoever asks for them to be ignored does not pay for that.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import Any

import orjson

from apiserver.endpoints import notjson, protobuf, yamlbodies
from apiserver.model import nesting
from apiserver.model.errors import StatusError, bad_request, unsupported_media_type

Object = dict[str, Any]

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"

_GO_KINDS = {bool: "bool", list: "array", str: "string"}
_ACCEPTED = f"{JSON}, {YAML}, {PROTOBUF}"


def media_type(header: str) -> str:
    """A Content-Type header without its parameters."""
    return header.partition(";")[0].strip().lower()


def read_object(body: bytes, content_type: str, kind: str = "") -> Object:
    """The object of a POST or PUT. `kind`: which it should be of, for errors. Raises StatusError 400, 415."""
    match media_type(content_type):
        case "application/vnd.kubernetes.protobuf":
            return protobuf.decode(body)
        case "application/yaml":
            return _of_object(yamlbodies.load(body), body, kind)
        case "" | "application/json":
            return read_json(body, kind)
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {_ACCEPTED}"
    )


def repeated(body: bytes, content_type: str) -> list[str]:
    """What stands twice in a body that `read_object` has read, in words (`duplicate field "data.x"`)."""
    match media_type(content_type):
        case "application/vnd.kubernetes.protobuf":
            return []
        case "application/yaml":
            text = yamlbodies.repeated(body)
            return [text] if text else []
    return duplicates(body)


def read_json(body: bytes, kind: str = "") -> Object:
    """Raises StatusError 400."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise _unrecognized(notjson.reason(error), body, kind) from None
    _check_depth(body, found)
    return _of_object(found, body, kind)


def read_apply(body: bytes) -> Object:
    """The object of an apply patch, which is YAML by its media type and nearly always JSON; {} of an empty one. Raises
    StatusError 400."""
    try:
        found = orjson.loads(body)
        _check_depth(body, found)
    except orjson.JSONDecodeError:
        try:
            found = yamlbodies.load(body)
        except StatusError as error:
            raise bad_request(f"error decoding YAML: {error}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        kind = _GO_KINDS.get(type(found), "number")
        why = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {why}")
    return found


def repeated_in_apply(body: bytes) -> str:
    """What stands twice in a body that `read_apply` has read, in the words of Go's YAML library, else ""."""
    with contextlib.suppress(ValueError):
        if not duplicates(body):  # JSON, and much faster than YAML
            return ""
    text = yamlbodies.repeated(body)
    return f"{yamlbodies.CONVERTING}{text}" if text else ""


def read_patch(body: bytes) -> Any:
    """A merge, strategic or JSON patch. Raises StatusError 400."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"error decoding patch: {notjson.reason(error)}") from None
    _check_depth(body, found)
    return found


def _check_depth(body: bytes, found: Any) -> None:
    if body.count(b"{") + body.count(b"[") > nesting.DEPTH and nesting.too_deep(found):
        raise bad_request(f"the object provided is unrecognized: nested more than {nesting.DEPTH} levels deep")


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
    """The fields that stand twice in an object of `body`, in words, by path."""
    some = False

    def pairs(found: list[tuple[str, Any]]) -> Any:
        nonlocal some
        made = dict(found)
        if len(made) == len(found):
            return made
        some = True
        out = _Twice(made)
        out.twice = [name for name, times in Counter(name for name, _ in found).items() if times > 1]
        return out

    # Numbers do not matter here, and Python refuses long ones. Bytes it would look at for their encoding first.
    parsed = json.loads(body.decode(), object_pairs_hook=pairs, parse_int=len, parse_float=len)
    return [f'duplicate field "{path}"' for path in sorted(_paths(parsed, ""))] if some else []


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

"""ConversionReviews: what a conversion webhook is asked, and whether its answer is one.

An answer has to bring the same objects in the same order, each in the version asked for; of their metadata only labels
and annotations may differ, and of those none that are this server's marks. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from apiserver.model import marks
from apiserver.registry import metadata

Object = dict[str, Any]

_GROUP = "apiextensions.k8s.io"
_KNOWN = ("v1", "v1beta1")
_OURS = (marks.CLUSTER, marks.SOURCE_PATH, marks.SOURCE_COMMIT, marks.ORIGIN)
_SAME = (("name", "name"), ("namespace", "namespace"), ("UID", "uid"))


class Wrong(Exception):
    """The answer is none. The text follows `conversion webhook for <kind>`."""


class ConversionReview:
    """One question: objects that are not in `api_version` yet. Raises Wrong if there is no version to ask it in."""

    def __init__(self, objects: Sequence[Object], api_version: str, versions: Sequence[str]) -> None:
        self._objects = objects
        self._api_version = api_version
        self._uid = str(uuid.uuid4())
        version = next((v for v in versions if v in _KNOWN), None)
        if version is None:
            raise Wrong("failed: no supported conversion review versions")
        self._version = f"{_GROUP}/{version}"

    def body(self) -> bytes:
        request = {"uid": self._uid, "desiredAPIVersion": self._api_version, "objects": self._objects}
        return orjson.dumps({"kind": "ConversionReview", "apiVersion": self._version, "request": request})

    def converted(self, answer: bytes) -> list[Object]:
        """The objects of an answer, with the metadata that they had. Raises Wrong."""
        found = self._response(answer).get("convertedObjects") or []
        if not isinstance(found, list) or len(found) != len(self._objects):
            count = len(found) if isinstance(found, list) else 0
            raise Wrong(f"returned {count} objects, expected {len(self._objects)}")
        pairs = enumerate(zip(self._objects, found, strict=True))
        return [self._checked(index, one, other) for index, (one, other) in pairs]

    def _response(self, answer: bytes) -> Object:
        try:
            review = orjson.loads(answer)
        except orjson.JSONDecodeError:
            raise Wrong("failed: its answer is not JSON") from None
        if not isinstance(review, dict):
            raise Wrong("failed: its answer is not an object")
        response = review.get("response")
        strict = self._version.endswith("/v1")
        version, kind = review.get("apiVersion"), review.get("kind")
        if strict and (version, kind) != (self._version, "ConversionReview"):
            wanted = f"{self._version}, Kind=ConversionReview"
            raise Wrong(f"failed: expected webhook response of {wanted}, got {version}, Kind={kind}")
        if not isinstance(response, dict):
            raise Wrong("failed: no response provided")
        if strict and response.get("uid") != self._uid:
            raise Wrong(f'failed: expected response.uid="{self._uid}", got "{response.get("uid", "")}"')
        result = response.get("result")
        result = result if isinstance(result, dict) else {}
        if result.get("status") != "Success":
            unsaid = f"response.result.status was '{result.get('status', '')}', not 'Success'"
            raise Wrong(f"failed: {result.get('message') or unsaid}")
        return response

    def _checked(self, index: int, original: Object, made: Any) -> Object:
        place = _Place(index, len(self._objects) > 1)
        if not isinstance(made, dict):
            raise place.object("it is not an object")
        version, kind = made.get("apiVersion", ""), made.get("kind", "")
        if version != self._api_version:
            why = f"invalid groupVersion (expected {self._api_version}, received {version})"
            raise place.object(why, numbered=True)
        if kind != original["kind"]:
            raise place.object(f"invalid kind (expected {original['kind']}, received {kind})", numbered=True)
        brought = made.get("metadata")
        brought = brought if isinstance(brought, dict) else {}
        for what, field in _SAME:
            before, after = original["metadata"].get(field) or "", brought.get(field) or ""
            if before != after:
                raise place.object(f"must have the same {what}: {before} != {after}")
        return {**made, "metadata": _restored(original["metadata"], brought, place)}


class _Place(NamedTuple):
    """Of an object among those that came back; how it is called depends on whether there are `several`."""

    number: int
    several: bool

    def object(self, why: str, *, numbered: bool = False) -> Wrong:
        if self.several:
            return Wrong(f"returned invalid converted object at index {self.number}: {why}")
        return Wrong(f"returned invalid object{' at index 0' if numbered else ''}: {why}")

    def metadata(self, why: str) -> Wrong:
        where = f" in object at index {self.number}" if self.several else ""
        return Wrong(f"returned invalid metadata{where}: {why}")


def _restored(original: Object, made: Object, place: _Place) -> Object:
    """The metadata that there were, with the labels and annotations that came."""
    found = dict(original)
    for field in ("labels", "annotations"):
        brought = made.get(field)
        if brought is None:
            brought = {}
        if not isinstance(brought, dict):
            raise place.metadata(f"invalid metadata.{field} of type {_go_type(brought)} in converted object")
        for key, value in brought.items():
            if not isinstance(value, str):
                what = f"metadata.{field}[{key}] must be a string, but is {_go_type(value)} in converted object"
                raise place.metadata(what)
        if brought != (original.get(field) or {}):
            _check(field, brought, place)
        kept = {k: v for k, v in (original.get(field) or {}).items() if k in _OURS}
        brought = {**{k: v for k, v in brought.items() if k not in _OURS}, **kept}
        found.pop(field, None)
        if brought:
            found[field] = brought
    return found


def _check(field: str, brought: dict[str, str], place: _Place) -> None:
    check = metadata.check_labels if field == "labels" else metadata.check_annotations
    texts = [f"metadata.{field.removesuffix('s')}: {c.message}" if field == "annotations" else f"{c.field}: {c.message}"
             for c in check(brought)]  # fmt: skip
    if texts:
        raise place.metadata(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _go_type(value: Any) -> str:
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case list():
            return "[]interface {}"
        case str():
            return "string"
        case _:
            return "map[string]interface {}"

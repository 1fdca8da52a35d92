"""kubectl's annotation of what it applied last, and how an apply by the manager `kubectl` gets along with it.

Who moves from client-side to server-side apply leaves an object behind whose fields belong to the manager of the
client-side apply. kube-apiserver lets the manager `kubectl`, and no other, take over what the annotation says and the
object still has; and keeps the annotation up to date for who moves back. Called by apply.py.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.schema import fieldset, typed_walk
from apiserver.schema.fieldset import Fields
from apiserver.schema.node import Node

Json = dict[str, Any]

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"
ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all keys and values of an object's annotations."""

_FOR_HTML = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def yielded(live: Json, root: Node, manager: str, api_version: str) -> Fields:
    """The fields that `manager` may take from others without force: those applied last that nobody changed since."""
    if manager != MANAGER:
        return {}
    try:
        applied = orjson.loads(_annotations(live).get(ANNOTATION) or "null")
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
        return {}
    changes = typed_walk.compare(applied, live, root)
    fields = typed_walk.fields_of(applied, root)
    for changed in (changes.modified, changes.added, changes.removed):
        fields = fieldset.difference(fields, changed)
    return fields


def renewed(result: Json, applied: Json, manager: str) -> Json:
    """`result`, whose annotation, if it has one, says what `manager` applied now. One that is too long goes."""
    annotations = _annotations(result)
    if manager != MANAGER or not annotations.get(ANNOTATION):
        return result
    kept = {key: value for key, value in _annotations(applied).items() if key != ANNOTATION}
    metadata = {key: value for key, value in (applied.get("metadata") or {}).items() if key != "annotations"}
    if kept:
        metadata["annotations"] = kept
    said = orjson.dumps({**applied, "metadata": metadata}, option=orjson.OPT_SORT_KEYS).decode()
    annotations = {**annotations, ANNOTATION: said.translate(_FOR_HTML) + "\n"}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        del annotations[ANNOTATION]
    return {**result, "metadata": {**result["metadata"], "annotations": annotations}}


def _annotations(obj: Json) -> Json:
    return (obj.get("metadata") or {}).get("annotations") or {}

"""PATCH bodies: from a media type and bytes to a function that changes an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apiserver.endpoints import bodies
from apiserver.model import nesting
from apiserver.model.errors import StatusError, bad_request, unsupported_media_type
from apiserver.registry.schemas import definitions
from apiserver.registry.served import ServedKind
from apiserver.schema import patches
from apiserver.schema.strategic import strategic_merge

Object = dict[str, Any]

_MAX_OPERATIONS = 10_000
_OPERATION = frozenset({"op", "path", "from", "value"})


@dataclass(frozen=True, slots=True)
class Patch:
    """`change` makes the new object of a live one. `strategic`: the patch itself, if it is a strategic merge patch:
    what is wrong with the result is then said of the patch."""

    change: Callable[[Object], Object]
    strategic: Object | None = None


def patcher(kind: ServedKind, media: str, body: bytes) -> Patch:
    """Raises StatusError 400, 413, 415."""
    match media:
        case bodies.MERGE:
            patch = bodies.read_patch(body)
            if not isinstance(patch, dict):
                raise bad_request("error decoding patch: not an object")
            return Patch(lambda live: patches.merge_patch(live, patch))
        case bodies.JSON_PATCH:
            ops = bodies.read_patch(body)
            if not isinstance(ops, list):
                raise bad_request("error decoding patch: not a list of operations")
            if len(ops) > _MAX_OPERATIONS:
                raise StatusError(
                    413,
                    "RequestEntityTooLarge",
                    f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(ops)}",
                )
            return Patch(lambda live: _json_patched(live, ops))
        case bodies.STRATEGIC if not kind.custom:
            patch = bodies.read_patch(body)
            if not isinstance(patch, dict):
                raise bad_request("error decoding patch: not an object")
            return Patch(lambda live: _strategic(kind, live, patch), patch)
    accepted = [bodies.JSON_PATCH, bodies.MERGE, bodies.APPLY, *([] if kind.custom else [bodies.STRATEGIC])]
    raise unsupported_media_type(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


def repeated_in_patch(media: str, body: bytes) -> list[str]:
    """What stands twice in a patch that `patcher` has read, and what no JSON patch has, in words."""
    texts = bodies.duplicates(body)
    if media != bodies.JSON_PATCH:
        return texts
    ops = [(i, op) for i, op in enumerate(bodies.read_patch(body)) if isinstance(op, dict)]
    texts += [f'unknown field "[{i}].{name}"' for i, op in ops for name in op if name not in _OPERATION]
    return [f"json patch {text}" for text in texts]


def _strategic(kind: ServedKind, live: Object, patch: Object) -> Object:
    """Raises StatusError 400 for directives that cannot be read."""
    try:
        return strategic_merge(live, patch, kind.source.openapi, definitions())
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def _json_patched(live: Object, ops: list[Any]) -> Object:
    """Raises StatusError 422 for an operation that cannot be done, a failed test among them."""
    try:
        made = patches.json_patch(live, ops)
    except (ValueError, RecursionError):
        made = None
    if not isinstance(made, dict) or nesting.too_deep(made):
        raise StatusError(422, "Invalid", "the server rejected our request due to an error in our request")
    return made

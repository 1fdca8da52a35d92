"""The errors of the Kubernetes API, as exceptions.

Raised by every layer above `model`; turned into an HTTP answer in one place (endpoints/errors.py). Texts follow
kube-apiserver, since clients match on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `Status.details.causes`.

    `reason` is Kubernetes' cause type (`FieldValueInvalid`, `FieldValueRequired`, `FieldManagerConflict`, …), `field`
    a path as users write it (`spec.containers[0].name`).
    """

    reason: str
    message: str
    field: str = ""

    def as_json(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


@dataclass(slots=True)
class StatusError(Exception):
    """An answer other than success: a `Status` object with code, reason and message."""

    code: int
    reason: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)
    retry_after: int | None = None

    def __str__(self) -> str:
        return self.message

    def as_status(self) -> dict[str, Any]:
        """The `Status` object as clients read it."""
        details = dict(self.details)
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": details,
            "code": self.code,
        }


def qualified(resource: str, group: str) -> str:
    """`deployments.apps`, or `configmaps` for the core group."""
    return f"{resource}.{group}" if group else resource


def _details(resource: str, group: str, name: str) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if resource:
        details["kind"] = resource
    return details


def not_found(resource: str, group: str, name: str) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(resource, group, name))


def no_such_resource() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: str, group: str, name: str) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(resource, group, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, group: str, name: str, why: str = STALE) -> StatusError:
    message = f'Operation cannot be fulfilled on {qualified(resource, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(resource, group, name))


def forbidden(resource: str, group: str, name: str, why: str) -> StatusError:
    message = f'{qualified(resource, group)} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, _details(resource, group, name))


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def method_not_allowed(
    message: str = "the server does not allow this method on the requested resource",
) -> StatusError:
    return StatusError(405, "MethodNotAllowed", message)


def unsupported_media_type(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def expired(message: str, continue_token: str | None = None) -> StatusError:
    error = StatusError(410, "Expired", message)
    if continue_token is not None:
        error.details["continue"] = continue_token
    return error


def unavailable(message: str, retry_after: int = 1) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message, retry_after=retry_after)


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> StatusError:
    """422 with every field error: `Gadget.z.io "g" is invalid: spec.size: Invalid value: …`.

    `causes` hold messages as field errors print them, without the leading field path.
    """
    texts = [f"{c.field}: {c.message}" if c.field else c.message for c in causes]
    body = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    details: Mapping[str, Any] = {"causes": [c.as_json() for c in causes]}
    message = f'{qualified(kind, group)} "{name}" is invalid: {body}'
    return StatusError(422, "Invalid", message, {**_details(kind, group, name), **details})

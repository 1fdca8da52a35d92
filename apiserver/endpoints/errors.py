"""The one table from exceptions to answers.

Called by kube.py around every request; nothing else turns errors into HTTP.
"""

from __future__ import annotations

import logging

import orjson

from apiserver.endpoints.exchange import JSON, TEXT, Exchange, Headers
from apiserver.model.errors import StatusError, expired
from apiserver.model.failures import described
from apiserver.storage.protocol import Compacted, Conflict, NoSpace

log = logging.getLogger(__name__)


_SHOWN = 300
"""Characters of a path in the log."""
_FULL = 507


class NoSuchPath(Exception):
    """A path or API group that nobody serves: plain text 404, as kube-apiserver answers it."""


def as_status(error: Exception) -> StatusError:
    """What `error` means to a client. Unknown ones are logged by kind and place, and answered without either."""
    match error:
        case StatusError():
            return error
        case Compacted():
            return expired(str(error))
        case Conflict():
            return StatusError(409, "Conflict", "the object was changed while it was written; please try again")
        case NoSpace():
            text = "the server's disk is full: nothing was written. Reads go on; the server's operator has to make room"
            return StatusError(507, "InsufficientStorage", text)
        case _:
            log.error("request failed\n%s", described(error))
            return StatusError(500, "InternalError", "Internal error occurred: see the server's log")


def status_body(error: StatusError) -> bytes:
    """The Status object as JSON. A continue token belongs into its metadata, not its details."""
    status = error.as_status()
    token = status["details"].pop("continue", None)
    if token is not None:
        status["metadata"]["continue"] = token
    if not status["details"] and status["reason"] == "BadRequest":
        del status["details"]  # as kube-apiserver writes these
    return orjson.dumps(status)


async def answer(exchange: Exchange, error: Exception) -> None:
    """Sends `error` unless an answer is already under way (a broken watch just ends)."""
    if exchange.answered:
        return
    if isinstance(error, NoSuchPath):
        await exchange.answer(404, b"404 page not found\n", TEXT)
        return
    status = as_status(error)
    if status.code > 500:  # of 500 the fault is logged already
        level = logging.WARNING if status.code == _FULL else logging.INFO  # any client can have the others
        log.log(level, "%s %s: %d %s", exchange.method, exchange.path[:_SHOWN], status.code, status.reason)
    extra: Headers = []
    if status.retry_after is not None:
        extra.append((b"retry-after", str(status.retry_after).encode()))
    await exchange.answer(status.code, status_body(status), JSON, extra)

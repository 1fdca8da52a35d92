"""POST /webhooks/push: a forge says that somebody pushed, and the fleet's repository is looked at now.

Called by shell.py. Whoever knows the secret may ring, and decides nothing but when (bell): nothing of what is delivered
is read as anything, kept or logged, and how often the repository is looked at is for who listens. Without a secret
there is no such path. Repositories of workspaces have a look of their own to ask for (reconciling).
"""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from apiserver import bell
from apiserver.auth.deliveries import Delivery, secret_file
from apiserver.model.errors import StatusError
from apiserver.secretfile import NoSecret

PUSH_PATH = "/webhooks/push"
_LARGEST = 64 * 1024
_SECONDS = 10.0
"""That a body may take: as long as forges wait for an answer."""
_QUIET_SECONDS = 60.0
_LARGE = "a delivery has 64 KiB at most: a push this large is seen when the repository is looked at next (--poll)"
_log = logging.getLogger(__name__)


class PushWebhook:
    """`secret`: see secret_file. `data_dir`: where the bell is."""

    def __init__(self, secret: Path, data_dir: Path) -> None:
        self._secret, self._data_dir = secret_file(secret), data_dir
        self._quiet_until = 0.0

    async def ring(self, request: Request) -> Response:
        """202 where it rang. Raises StatusError."""
        try:
            delivery = Delivery(request.headers.raw, self._secret.read())
        except NoSecret as error:
            self._warn(str(error))
            raise _refused(404, "NotFound", "there is no such path") from None
        if not delivery.is_signed:
            raise _refused(401, "Unauthorized", "no signature or token of a forge is in the headers")
        try:
            async with asyncio.timeout(_SECONDS):
                await _taken(request, delivery)
        except TimeoutError:
            raise _refused(408, "Timeout", f"the body was not there within {_SECONDS:.0f} seconds") from None
        except ClientDisconnect:
            return Response(status_code=400)
        if not delivery.fits():
            self._warn("a webhook was refused, since its signature does not fit the secret in --webhook-secret-file")
            raise _refused(401, "Unauthorized", "the signature does not fit the secret of this server")
        await asyncio.to_thread(bell.ring, self._data_dir, bell.LOOK)
        return Response(status_code=202)

    def _warn(self, text: str) -> None:
        """Not for each: whoever knows the path could fill the log."""
        now = time.monotonic()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET_SECONDS
            _log.warning("%s", text)


async def _taken(request: Request, delivery: Delivery) -> None:
    """Raises StatusError for a body that is too large, of which no more is read then."""
    said = request.headers.get("content-length", "0")
    if len(said) > 18 or not said.isdecimal() or int(said) > _LARGEST:
        raise _refused(413, "RequestEntityTooLarge", _LARGE)
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _LARGEST:
            raise _refused(413, "RequestEntityTooLarge", _LARGE)
        delivery.take(part)


def _refused(code: int, reason: str, message: str) -> StatusError:
    return StatusError(code, reason, message)

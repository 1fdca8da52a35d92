"""One question to a webhook: an HTTPS POST, and its answer. Called by webhookconversion.py.

Where it may go is outbound.py's matter. Nothing is redirected, and no answer is quoted to the tenant. Synchronous, with
one deadline for the whole request.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from apiserver.registry.outbound import NotAllowed, Outbound, trusting

SECONDS = 30.0
"""For a whole request, as kube-apiserver gives a conversion webhook."""

_MOST = 64 * 1024 * 1024
_PIECE = 256 * 1024
_TIMEOUT = f"timeout={int(SECONDS)}s"


class Failed(Exception):
    """The request has no answer; the text says why, for people. `remote`: it may be the other side's fault."""

    def __init__(self, why: str, *, remote: bool = True) -> None:
        super().__init__(why)
        self.remote = remote


class PostTarget(NamedTuple):
    """`url`: https, without query. `at`: where to connect, instead of what the URL's host stands for: pairs of an IP
    address and a port. `ca`: PEM certificates to trust; b"": those of the system."""

    url: str
    ca: bytes = b""
    at: tuple[tuple[str, int], ...] = ()


def post(outbound: Outbound, target: PostTarget, body: bytes, seconds: float = SECONDS) -> bytes:
    """The answer's body. Raises Failed."""
    try:
        return _post(outbound, target, body, time.monotonic() + seconds)
    except Failed as error:
        raise Failed(f'Post "{target.url}?{_TIMEOUT}": {error}', remote=error.remote) from None
    except NotAllowed as error:
        raise Failed(f'Post "{target.url}?{_TIMEOUT}": address {error}', remote=False) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Failed(f'Post "{target.url}?{_TIMEOUT}": {_told(error)}') from None


def _post(outbound: Outbound, target: PostTarget, body: bytes, until: float) -> bytes:
    parts = urlsplit(target.url)
    host, port, path = parts.hostname or "", parts.port or 443, parts.path or "/"
    with outbound.secured(_context(target.ca), host, port, until, at=target.at) as secured:
        connection = http.client.HTTPConnection(host, port)
        connection.sock = secured
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
        connection.request("POST", f"{path}?{_TIMEOUT}", body, headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise Failed(f"it answered with status {answer.status}")
        return b"".join(_pieces(answer))


def _pieces(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    size = 0
    while piece := answer.read1(_PIECE):
        size += len(piece)
        if size > _MOST:
            raise Failed(f"its answer is larger than {_MOST} bytes")
        yield piece


@lru_cache(256)
def _context(ca: bytes) -> ssl.SSLContext:
    try:
        return trusting(ca)
    except ValueError as error:
        raise Failed(f"caBundle cannot be used: {error}", remote=False) from None


def _told(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "deadline exceeded"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error.verify_message}"
    if isinstance(error, socket.gaierror):
        return f"lookup failed: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__

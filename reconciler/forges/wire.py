"""One request over the network, with nothing but the standard library, whose proxies and certificates are the user's
own: HTTPS_PROXY and SSL_CERT_FILE hold here as in any program of a CI job.

Called by forgeclient.py and notification.py. Whoever is on the other end may be slow, or somebody else: each request
has an end and each answer a size, and no redirect is followed, along which a secret would go.
"""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any, NamedTuple

from reconciler.forges.address import is_secured
from reconciler.forges.errors import ForgeError

SENDING = (OSError, ValueError, http.client.HTTPException)
"""What `Wire.sent` raises where there is no answer."""

_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class ForgePatience:
    """`tries`: of a request. `pause`: seconds before the second one, doubled for each further one, where the forge does
    not say how long; `longest`: how much of what it says is waited for. `quiet`, `whole`: seconds for which an answer
    may be silent, and within which it has to be there. `size`: its bytes."""

    tries: int = 4
    pause: float = 1.0
    longest: float = 60.0
    quiet: float = 30.0
    whole: float = 120.0
    size: int = 64 * 1024 * 1024
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic


class Post(NamedTuple):
    """`secret`: headers that go to this URL alone."""

    method: str
    url: str
    data: bytes | None
    heads: Mapping[str, str]
    secret: Mapping[str, str]


class WireAnswer(NamedTuple):
    """Whatever its status."""

    status: int
    headers: Message
    body: bytes


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Wire:
    """To the place at `url`, which is secured or this machine (address.py)."""

    def __init__(self, url: str, patience: ForgePatience) -> None:
        self._url, self._patience = url, patience
        stay: list[urllib.request.BaseHandler] = [_Stay()]
        if is_secured(url):
            stay.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
        else:
            stay.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*stay)

    def sent(self, post: Post) -> WireAnswer:
        """Raises SENDING, and ForgeError for an answer that is too long in size or time."""
        made = urllib.request.Request(post.url, post.data, dict(post.heads), method=post.method)  # noqa: S310
        made.add_header("User-Agent", "treeplane")
        for name, value in post.secret.items():
            made.add_unredirected_header(name, value)
        until = self._patience.clock() + self._patience.whole
        try:
            response = self._opener.open(made, timeout=self._patience.quiet)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return WireAnswer(response.status, response.headers, self._whole(response, until))

    def _whole(self, response: Any, until: float) -> bytes:
        pieces, size = [], 0
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self._patience.size:
                raise ForgeError(f"{self._url} answers with more than {self._patience.size} bytes")
            if self._patience.clock() > until:
                raise ForgeError(f"{self._url} takes more than {self._patience.whole:g} s to answer")
        return b"".join(pieces)


def asked_to_wait(headers: Message) -> float:
    """Seconds, as the answer says them; 0 where it does not."""
    said = headers.get("Retry-After", "").strip()
    return float(said) if said.isdecimal() and len(said) < 10 else 0.0


def reason_of(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error or type(error).__name__)


def unsent(error: Exception) -> bool:
    """Whether there was no connection to send anything through."""
    return isinstance(getattr(error, "reason", None), OSError)

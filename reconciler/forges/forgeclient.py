"""Requests to a forge's API with a token, with nothing but the standard library, whose proxies and certificates are the
user's own: HTTPS_PROXY and SSL_CERT_FILE hold here as in any program of a CI job.

Called by the dialects (github.py, gitlab.py, gitea.py), which know paths and what an answer means. A forge may be slow,
busy or somebody else's: each request has an end and each answer a size, no redirect is followed (the token would go
along), and what a forge says is told without the token.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from email.message import Message
from enum import Enum, auto
from typing import Any, NamedTuple

from reconciler.forges.address import checked, is_secured
from reconciler.forges.errors import ForgeError, MaybeDone, NotSaid
from reconciler.forges.refusals import refusal, words

_PIECE = 64 * 1024
_BUSY = 429
_BROKEN = (502, 503, 504)


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


class ForgeAnswer(NamedTuple):
    """`value`: the JSON; None where there is none."""

    status: int
    headers: Message
    value: Any


class ForgeRequest(NamedTuple):
    """`path`: below the API's, in an URL's spelling. `told`: what is no failure besides what begins with 2."""

    method: str
    path: str
    query: Mapping[str, str | int] = {}
    body: Any = None
    told: Collection[int] = ()


class _Again(Enum):
    """Whether the same is asked again: where a forge says that it did nothing, or where doing it twice is doing it
    once. Elsewhere it may have been done, and who called has to look."""

    NO = auto()
    YES = auto()
    IF_NOT_DONE = auto()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class ForgeClient:
    """Of one forge. `api`: the URL of its API; `rights`: what the token has to be allowed, for who reads a 403."""

    def __init__(self, api: str, token: str, rights: str, patience: ForgePatience | None = None) -> None:
        """Raises NotSaid."""
        if not token.isascii() or not token.isprintable() or not token or " " in token:
            raise NotSaid("the token is empty, or has characters that no token has", "look for a line break in it")
        self.api = checked(api)
        self.patience = patience or ForgePatience()
        self._token, self._rights = token, rights
        stay: list[urllib.request.BaseHandler] = [_Stay()]
        if is_secured(self.api):
            stay.append(urllib.request.HTTPSHandler(context=ssl.create_default_context()))
        else:
            stay.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*stay)

    def ask(self, request: ForgeRequest) -> ForgeAnswer:
        """What it answers; one that is busy is asked again. Raises ForgeError, and MaybeDone of a POST of which nobody
        knows whether it was done."""
        patience, pause = self.patience, self.patience.pause
        for left in reversed(range(patience.tries)):
            answer = self._once(request)
            if answer.status // 100 == 2 or answer.status in request.told:
                return answer
            again = _again(request, answer)
            if not left or again is _Again.NO:
                break
            patience.sleep(min(_asked_to_wait(answer, pause), patience.longest))
            if again is _Again.IF_NOT_DONE:
                break
            pause *= 2
        where = f"{request.method} {self.api}{request.path}"
        text, hint = refusal(answer.status, self._said(answer), self._rights)
        kind = MaybeDone if again is _Again.IF_NOT_DONE else ForgeError
        raise kind(f"{where}: {text}", hint)

    def _said(self, answer: ForgeAnswer) -> str:
        """In the forge's words; of a redirect, where it leads."""
        if answer.status // 100 == 3:
            return words(answer.headers.get("Location", ""), self._token)
        value = answer.value if isinstance(answer.value, dict) else {}
        return words(value.get("message") or value.get("error") or "", self._token)

    def _once(self, request: ForgeRequest) -> ForgeAnswer:
        query = f"?{urllib.parse.urlencode(request.query)}" if request.query else ""
        data = None if request.body is None else json.dumps(request.body).encode()
        made = urllib.request.Request(  # noqa: S310
            f"{self.api}{request.path}{query}", data, {"Accept": "application/json"}, method=request.method
        )
        made.add_header("User-Agent", "treeplane")
        if data is not None:
            made.add_header("Content-Type", "application/json")
        made.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            return self._heard(made)
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = words(str(getattr(error, "reason", "") or error or type(error).__name__), self._token)
            kind = MaybeDone if request.method == "POST" and not _unsent(error) else ForgeError
            raise kind(
                f"{self.api} does not answer: {reason}", "is that where the forge is, and can this machine reach it?"
            ) from None

    def _heard(self, made: urllib.request.Request) -> ForgeAnswer:
        until = self.patience.clock() + self.patience.whole
        try:
            response = self._opener.open(made, timeout=self.patience.quiet)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return ForgeAnswer(response.status, response.headers, _json(self._whole(response, until)))

    def _whole(self, response: Any, until: float) -> bytes:
        pieces, size = [], 0
        while piece := response.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > self.patience.size:
                raise ForgeError(f"{self.api} answers with more than {self.patience.size} bytes")
            if self.patience.clock() > until:
                raise ForgeError(f"{self.api} takes more than {self.patience.whole:g} s to answer")
        return b"".join(pieces)


def _again(request: ForgeRequest, answer: ForgeAnswer) -> _Again:
    """GitHub says with a 403 that one asks too often."""
    if answer.status == _BUSY or (answer.status == 403 and "Retry-After" in answer.headers):
        return _Again.YES
    if answer.status not in _BROKEN:
        return _Again.NO
    return _Again.IF_NOT_DONE if request.method == "POST" else _Again.YES


def _asked_to_wait(answer: ForgeAnswer, otherwise: float) -> float:
    said = answer.headers.get("Retry-After", "").strip()
    return float(said) if said.isdecimal() and len(said) < 10 else otherwise


def _unsent(error: Exception) -> bool:
    """Whether there was no connection to send anything through."""
    return isinstance(getattr(error, "reason", None), OSError)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

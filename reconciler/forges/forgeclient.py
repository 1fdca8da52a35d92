"""Requests to a forge's API with a token.

Called by the dialects (github.py, gitlab.py, gitea.py), which know paths and what an answer means; how a request goes
out is wire.py's. A forge may be busy or somebody else's: what it says is told without the token.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Collection, Mapping
from email.message import Message
from enum import Enum, auto
from typing import Any, NamedTuple

from reconciler.forges.address import checked
from reconciler.forges.errors import ForgeError, MaybeDone, NotSaid
from reconciler.forges.refusals import refusal, words
from reconciler.forges.wire import SENDING, ForgePatience, Post, Wire, asked_to_wait, reason_of, unsent

_BUSY = 429
_BROKEN = (502, 503, 504)


class ForgeAnswer(NamedTuple):
    """`value`: the JSON; None where there is none."""

    status: int
    headers: Message
    value: Any


class ForgeRequest(NamedTuple):
    """`path`: below the API's, in an URL's spelling. `told`: what is no failure besides what begins with 2. `again`: a
    POST that does the same when it comes twice."""

    method: str
    path: str
    query: Mapping[str, str | int] = {}
    body: Any = None
    told: Collection[int] = ()
    again: bool = False


class _Again(Enum):
    """Whether the same is asked again: where a forge says that it did nothing, or where doing it twice is doing it
    once. Elsewhere it may have been done, and who called has to look."""

    NO = auto()
    YES = auto()
    IF_NOT_DONE = auto()


class ForgeClient:
    """Of one forge. `api`: the URL of its API; `rights`: what the token has to be allowed, for who reads a 403."""

    def __init__(self, api: str, token: str, rights: str, patience: ForgePatience | None = None) -> None:
        """Raises NotSaid."""
        if not token.isascii() or not token.isprintable() or not token or " " in token:
            raise NotSaid("the token is empty, or has characters that no token has", "look for a line break in it")
        self.api = checked(api)
        self.patience = patience or ForgePatience()
        self._token, self._rights = token, rights
        self._wire = Wire(self.api, self.patience)

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
            patience.sleep(min(asked_to_wait(answer.headers) or pause, patience.longest))
            if again is _Again.IF_NOT_DONE:
                break
            pause *= 2
        where = f"{request.method} {self.api}{request.path}"
        text, hint = refusal(answer.status, self._said(answer), self._rights)
        kind = MaybeDone if again is _Again.IF_NOT_DONE else ForgeError
        raise kind(f"{where}: {text}", hint, status=answer.status, after=asked_to_wait(answer.headers))

    def _said(self, answer: ForgeAnswer) -> str:
        """In the forge's words; of a redirect, where it leads."""
        if answer.status // 100 == 3:
            return words(answer.headers.get("Location", ""), self._token)
        value = answer.value if isinstance(answer.value, dict) else {}
        return words(value.get("message") or value.get("error") or "", self._token)

    def _once(self, request: ForgeRequest) -> ForgeAnswer:
        query = f"?{urllib.parse.urlencode(request.query)}" if request.query else ""
        data = None if request.body is None else json.dumps(request.body).encode()
        heads = {"Accept": "application/json", **({} if data is None else {"Content-Type": "application/json"})}
        secret = {"Authorization": f"Bearer {self._token}"}
        post = Post(request.method, f"{self.api}{request.path}{query}", data, heads, secret)
        try:
            status, headers, body = self._wire.sent(post)
        except SENDING as error:
            reason = words(reason_of(error), self._token)
            kind = MaybeDone if request.method == "POST" and not request.again and not unsent(error) else ForgeError
            raise kind(
                f"{self.api} does not answer: {reason}", "is that where the forge is, and can this machine reach it?"
            ) from None
        return ForgeAnswer(status, headers, _json(body))


def _again(request: ForgeRequest, answer: ForgeAnswer) -> _Again:
    """GitHub says with a 403 that one asks too often."""
    if answer.status == _BUSY or (answer.status == 403 and "Retry-After" in answer.headers):
        return _Again.YES
    if answer.status not in _BROKEN:
        return _Again.NO
    return _Again.IF_NOT_DONE if request.method == "POST" and not request.again else _Again.YES


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

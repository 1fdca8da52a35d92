"""One HTTP exchange over ASGI: reading a request, sending an answer. Knows nothing of Kubernetes.

Used by every endpoint. Headers and query are read on demand, since most requests need few of them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from typing import Any, Protocol
from urllib.parse import parse_qs

import orjson

from apiserver.endpoints.compression import Compressor, compress, compressor
from apiserver.logs.requestids import HEADER, REQUEST_ID
from apiserver.model.errors import StatusError, bad_request

ASGIScope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

MAX_BODY = 3 * 1024 * 1024
GZIP_FROM = 128 * 1024
"""Smaller bodies cost more to compress than to send (the bound that kube-apiserver uses too)."""

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"
_NUMBER = re.compile(r"[-+]?[0-9]+")
_DIGITS = 100
"""Of a number that is worth reading; Python refuses very long ones."""
_PARAMETERS = 1000
_PEOPLE = ("Mozilla/", "Wget/", "curl/")


class Direct(Protocol):
    """What the server may offer beside ASGI's send (apiserver/wire.py). False: nothing was sent."""

    def reply(self, scope: ASGIScope, status: int, headers: Headers, body: bytes) -> bool: ...

    def stream(self, scope: ASGIScope, data: bytes) -> bool: ...

    def cut(self) -> None: ...


class Exchange:
    """A request and the way to answer it. `status`: of its answer, 0 as long as there is none."""

    __slots__ = (
        "_query",
        "_send",
        "answered",
        "headers",
        "method",
        "path",
        "receive",
        "said",
        "scope",
        "status",
        "warnings",
    )

    def __init__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: Headers = scope["headers"]
        self.answered = False
        self.status = 0
        self.warnings: list[str] = []
        named: str = scope.get(REQUEST_ID, "")
        self.said: Headers = [(HEADER, named.encode())] if named else []
        """Headers that any answer has."""
        self._query: dict[str, list[str]] | None = None

    def header(self, name: bytes) -> str:
        """The first header of that (lower-case) name, or ""."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return ""

    @property
    def query(self) -> dict[str, list[str]]:
        if self._query is None:
            raw = self.scope["query_string"]
            try:
                self._query = parse_qs(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_PARAMETERS)
            except ValueError:
                raise bad_request(f"a request has at most {_PARAMETERS} parameters") from None
        return self._query

    def parameter(self, name: str) -> str:
        """The first query parameter of that name, or ""."""
        found = self.query.get(name)
        return found[0] if found else ""

    def flag(self, name: str) -> bool:
        """A boolean parameter as Go reads it; absent is False, and so are `0` and `false`. Raises StatusError 400."""
        text = self.parameter(name)
        if text in {"", "0", "f", "F", "false", "FALSE", "False"}:
            return False
        if text in {"1", "t", "T", "true", "TRUE", "True"}:
            return True
        raise bad_request(f'strconv.ParseBool: parsing "{text}": invalid syntax')

    def number(self, name: str) -> int | None:
        """An integer parameter of 64 bits; None if absent. Raises StatusError 400."""
        text = self.parameter(name)
        if not text:
            return None
        if not _NUMBER.fullmatch(text):
            raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        if len(text) > _DIGITS or not -(1 << 63) <= int(text) < 1 << 63:
            raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
        return int(text)

    async def gone(self) -> None:
        """Returns when the client has closed the connection: of a request whose body is read. No server cancels the
        application for that."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def body(self) -> bytes:
        """The whole request body. Raises StatusError 413 beyond 3 MiB."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("the client went away")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MAX_BODY:
                raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY}")
            if not message.get("more_body"):
                return b"".join(parts)

    def _for_people(self) -> bool:
        """What `pretty` says; without it, as kube-apiserver, whether a person's program asks."""
        if b"pretty=" in self.scope["query_string"]:
            return self.parameter("pretty") in ("1", "t", "true", "True")
        return self.header(b"user-agent").startswith(_PEOPLE)

    async def start(self, status: int, headers: Headers) -> None:
        """The head of a streamed answer; `chunk` sends the rest."""
        self.answered, self.status = True, status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def chunk(self, body: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def answer(self, status: int, body: bytes, kind: bytes = JSON, extra: Headers | None = None) -> None:
        """A whole answer, compressed if it is large and the client accepts that, indented for people's eyes."""
        if kind == JSON and self._for_people():
            body = _indented(body)
        elif kind == JSON and body[-1:] == b"}" and len(body) < GZIP_FROM:
            body += b"\n"  # as Go's encoder ends a document; clients show errors as they come
        packed = len(body) >= GZIP_FROM and self._takes_gzip()
        headers = self._head(kind, packed, extra)
        if packed:
            # A megabyte takes a millisecond.
            body = compress(body)
        if status != 304:  # a client's cache takes over the headers of a 304
            headers.append((b"content-length", b"%d" % len(body)))
        self.answered, self.status = True, status
        direct = self._direct()
        if direct is not None and direct.reply(self.scope, status, headers, body):
            return
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"" if self.method == "HEAD" else body})

    def stream(self, kind: bytes = JSON) -> Stream:
        """A 200 of unknown length, compressed if the client accepts that. Its head goes out with the first piece."""
        packed = self._takes_gzip()
        return Stream(self, self._head(kind, packed), compressor() if packed else None)

    def _takes_gzip(self) -> bool:
        return "gzip" in self.header(b"accept-encoding")

    def _head(self, kind: bytes, packed: bool, extra: Headers | None = None) -> Headers:
        headers: Headers = [(b"content-type", kind), *self.said, *(extra or ())]
        headers += [(b"warning", f'299 - "{_quoted(text)}"'.encode()) for text in self.warnings]
        if packed:
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        return headers

    def writer(self) -> Callable[[bytes], bool] | None:
        """Of a stream that `start` has begun: sends a piece at once, or nothing and says False (`chunk` has to wait for
        the connection). None where the server offers no such way."""
        direct = self._direct()
        return partial(direct.stream, self.scope) if direct is not None else None

    def linked(self) -> bool:
        """Whether the server offers its connection; it takes it back when that is lost."""
        return self._direct() is not None

    def cut(self) -> None:
        """Ends the connection at once, what was sent and not yet taken included."""
        direct = self._direct()
        if direct is not None:
            direct.cut()

    def _direct(self) -> Direct | None:
        found: Direct | None = (self.scope.get("extensions") or {}).get("treeplane.direct")
        return found


class Stream:
    """A long answer under way. Sending waits while the connection takes no more, and raises ConnectionResetError when
    the client is gone."""

    __slots__ = ("_exchange", "_headers", "_linked", "_packer")

    def __init__(self, exchange: Exchange, headers: Headers, packer: Compressor | None) -> None:
        self._exchange = exchange
        self._headers = headers
        self._packer = packer
        self._linked = exchange.linked()

    async def send(self, data: bytes) -> None:
        exchange = self._exchange
        if self._linked and not exchange.linked():
            raise ConnectionResetError("the client went away")
        if not exchange.answered:
            await exchange.start(200, self._headers)
        if self._packer is not None:
            data = self._packer.compress(data)
        if data and exchange.method != "HEAD":
            await exchange.chunk(data)

    async def end(self, data: bytes) -> None:
        if self._packer is not None:
            data = self._packer.compress(data) + self._packer.flush()
        await self._exchange.chunk(b"" if self._exchange.method == "HEAD" else data, more=False)


def _indented(body: bytes) -> bytes:
    try:
        return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
    except (orjson.JSONDecodeError, TypeError):
        return body  # a number that orjson cannot hold


def _quoted(text: str) -> str:
    """Inside a Warning header: one line, backslash and quote escaped."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")

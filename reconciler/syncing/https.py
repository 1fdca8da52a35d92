"""HTTPS to one sync target: the only door to urllib3, whose pool keeps connections for the next request.

Each new connection comes from apiserver/registry/outbound, which checks the address that it goes to. A target may lie:
every request has an end, no answer is read beyond a size, none is followed elsewhere or unpacked. Bytes in, bytes out;
client.py knows what they mean. Safe from every thread.
"""

from __future__ import annotations

import contextlib
import math
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import urllib3
from urllib3.connection import HTTPSConnection

from apiserver.registry.outbound import NotAllowed, Outbound, Timed, trusting
from reconciler.controllers.targets import Denied
from reconciler.syncing.errors import Excessive, TargetUnreachable, Unusable
from reconciler.syncing.kubeconfig import Access

_PIECE = 64 * 1024
_ALERTS = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")


@dataclass(frozen=True, slots=True)
class HTTPLimits:
    """`connections`: that are kept. `connect`: seconds until a connection is secured. `quiet`: seconds for which an
    answer that goes on may be silent. `answer`, `line`: bytes of an answer, and of one line of an answer that goes on.
    """

    connections: int = 64
    connect: float = 5.0
    quiet: float = 150.0
    answer: int = 64 * 1024 * 1024
    line: int = 16 * 1024 * 1024


def endless() -> float:
    """Seconds that are left where nothing ends."""
    return math.inf


class Request(NamedTuple):
    """`path`: with the query, below the kubeconfig's. `seconds`: for all of it, the answer's last byte included.
    `left`: seconds within which it has to be over besides, asked again before anything is sent."""

    method: str
    path: str
    seconds: float
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    left: Callable[[], float] = endless


@dataclass(frozen=True, slots=True)
class _Way:
    """How a connection is made."""

    outbound: Outbound
    context: ssl.SSLContext
    name: str
    first: bytes
    limits: HTTPLimits

    def connection(self, host: str, port: int, seconds: float) -> Timed:
        until = time.monotonic() + min(seconds, self.limits.connect)
        made = self.outbound.secured(self.context, host, port, until, name=self.name, first=self.first)
        made.quiet = self.limits.quiet
        return made


class _Deadline(urllib3.Timeout):
    """The end of a whole request, however long each part of it takes. `left`: see Request."""

    def __init__(self, request: Request) -> None:
        super().__init__(total=request.seconds)
        self._until, self._left = time.monotonic() + request.seconds, request.left

    def clone(self) -> _Deadline:
        return self

    def left(self) -> float:
        return min(self._until - time.monotonic(), self._left())


class _Connection(HTTPSConnection):
    """`left`: of the request that it is used for, in seconds."""

    left: Callable[[], float] = endless

    def __init__(self, *args: Any, way: _Way, **more: Any) -> None:
        super().__init__(*args, **more)
        self._way = way

    def connect(self) -> None:
        self.sock = self._way.connection(self.host, self.port, self.left())
        self.is_verified = True

    def request(self, *args: Any, **more: Any) -> None:
        self._limit()
        super().request(*args, **more)

    def getresponse(self) -> Any:
        self._limit()
        return super().getresponse()

    def _limit(self) -> None:
        assert isinstance(self.sock, Timed)
        self.sock.until = time.monotonic() + self.left()


class _Pool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Connection

    def _make_request(self, conn: Any, *args: Any, **more: Any) -> Any:
        # A number, which is what a connection gets of a timeout, would begin anew with each part of the request.
        conn.left = more["timeout"].left
        return super()._make_request(conn, *args, **more)


class Https:
    """`remedy`: what an administrator may do where the address is not allowed, for the error's text. `first`: what each
    connection begins with, before TLS."""

    def __init__(
        self, access: Access, outbound: Outbound, limits: HTTPLimits, remedy: str = "", first: bytes = b""
    ) -> None:
        """Raises Unusable where the kubeconfig's certificates are none."""
        way = _Way(outbound, _context(access), access.name, first, limits)
        host = f"[{access.host}]" if ":" in access.host else access.host
        self._pool = _Pool(host, access.port, maxsize=limits.connections, retries=False, way=way)
        self._before, self._limits, self._remedy = access.path, limits, remedy
        self._headers: Mapping[str, str] = {}
        self.token(access.token)

    def ask(self, request: Request) -> TargetAnswer:
        """The answer as soon as its headers are there. Raises Denied and Unreachable."""
        try:
            response = self._pool.urlopen(
                request.method,
                self._before + request.path,
                request.body,
                {**self._headers, **request.headers},
                redirect=False,
                timeout=_Deadline(request),
                preload_content=False,
                decode_content=False,
            )
        except NotAllowed as error:
            remedy = f"; {self._remedy}" if self._remedy else ""
            raise Denied("AddressRefused", f"`server` {error}{remedy}") from None
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise failure(error) from None
        return TargetAnswer(response, self._limits)

    def token(self, token: str) -> None:
        """Who we are there, from the next request on."""
        said = {"Authorization": f"Bearer {token}"} if token else {}
        self._headers = {"User-Agent": "treeplane", "Accept-Encoding": "identity", **said}

    def close(self) -> None:
        """Connections that wait end at once, those at work with their request."""
        self._pool.close()


class TargetAnswer:
    """Use it as a context: its connection is kept only if it was read to its end."""

    def __init__(self, response: urllib3.BaseHTTPResponse, limits: HTTPLimits) -> None:
        self.status = response.status
        self._response, self._limits = response, limits

    def __enter__(self) -> TargetAnswer:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._response.close()
        self._response.release_conn()

    def whole(self) -> bytes:
        """All of it. Raises Excessive, Denied and Unreachable."""
        pieces, size = [], 0
        for piece in self._pieces():
            size += len(piece)
            if size > self._limits.answer:
                raise Excessive(f"its answer is larger than {self._limits.answer} bytes")
            pieces.append(piece)
        self._response.release_conn()
        return b"".join(pieces)

    def lines(self) -> Iterator[bytes]:
        """Each as it comes, without its end. Raises as `whole`."""
        begun: list[bytes] = []
        size = 0
        for piece in self._pieces():
            *ended, rest = piece.split(b"\n")
            for line in ended:
                yield b"".join((*begun, line))
                begun, size = [], 0
            begun.append(rest)
            size += len(rest)
            if size > self._limits.line:
                raise Excessive(f"a line of its answer is longer than {self._limits.line} bytes")

    def abort(self) -> None:
        """End it, from another thread."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()

    def _pieces(self) -> Iterator[bytes]:
        try:
            while piece := self._response.read1(_PIECE):
                yield piece
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise failure(error) from None


def failure(error: Exception) -> TargetUnreachable | Denied:
    """In a short, stable text: addresses of objects and ports of ours would make every failure look new."""
    inner: BaseException = error
    while (deeper := getattr(inner, "reason", None) or inner.__cause__ or _wrapped(inner)) is not None:
        if not isinstance(deeper, BaseException):
            break
        inner = deeper
    if isinstance(inner, ssl.SSLCertVerificationError):
        return Denied("CertificateRefused", f"its certificate is not trusted: {inner.verify_message}")
    if isinstance(inner, ssl.SSLError) and "ALERT" in str(inner.reason) and any(a in str(inner) for a in _ALERTS):
        return Denied("CertificateRefused", "it does not accept the kubeconfig's client certificate")
    text = str(inner).lower()
    if "refused" in text:
        return TargetUnreachable("connection refused")
    if isinstance(inner, urllib3.exceptions.TimeoutError | TimeoutError) or "timed out" in text:
        return TargetUnreachable("timed out")
    return TargetUnreachable(f"connection broken ({type(inner).__name__})")


def _wrapped(error: BaseException) -> BaseException | None:
    """What urllib3's errors carry as their last argument."""
    last = error.args[-1] if error.args else None
    return last if isinstance(last, BaseException) else None


def _context(access: Access) -> ssl.SSLContext:
    try:
        context = trusting(access.ca)
    except ValueError as error:
        raise Unusable(f"`certificate-authority-data`: {error}") from None
    if access.certificate:
        # The ssl module reads them from files alone: one that nobody else may read, and that is gone at once.
        with tempfile.NamedTemporaryFile(prefix="treeplane-") as file:
            file.write(access.certificate + b"\n" + access.key)
            file.flush()
            try:
                # Without a password's callback OpenSSL would ask the terminal for that of an encrypted key.
                context.load_cert_chain(file.name, password=lambda: "")
            except (ssl.SSLError, OSError, ValueError):
                why = "are not a certificate and its key in PEM form, without a password"
                raise Unusable(f"`client-certificate-data` and `client-key-data` {why}") from None
    return context

"""HTTPS to the host of one source, for one visit. Each connection is made by apiserver/registry/outbound, the one way
out: the name is looked up once, what it stands for is checked, and that is connected to.

Called by uploadpack.py. No proxy is asked, no file or variable of this machine read, no redirect followed, and
credentials go nowhere but into the request's header. A host may lie, be silent or go on for ever: every read has an
end. Nothing of git is known here.
"""

from __future__ import annotations

import contextlib
import http.client
import math
import socket
import ssl
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from apiserver.registry.outbound import EVERYWHERE, Outbound, Timed, trusting
from reconciler.sourcing import redirects
from reconciler.sourcing.faults import TRANSPORT, SourceFault, VisitGivenUp, of_status, of_transport
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.settings import SourceBounds

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_PUBLIC, _ANYWHERE = Outbound(), Outbound(EVERYWHERE)
_CONTEXTS = 64


class SourceRequest(NamedTuple):
    """`path`: below the repository's. `accept`: the type that the answer has to have. `body`: None for a GET."""

    path: str
    accept: str
    body: bytes | None = None


class Metered(Timed):
    """`allowance`: up to which time.thread_time() of the thread that reads. Answers that come in a million pieces are
    no longer than others, but take this process's time from everybody."""

    allowance: float = math.inf

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        if time.thread_time() > self.allowance:
            raise TimeoutError("more CPU than a visit may take")
        return super().recv_into(buffer, nbytes, flags)


class VisitTime:
    """How long one visit may take: `until`, of time.monotonic, or until somebody gives it up from another thread."""

    def __init__(self, until: float) -> None:
        self.until = until
        self._lock = threading.Lock()
        self._given_up = False
        self._socket: socket.socket | None = None

    def give_up(self) -> None:
        """What is under way ends at once."""
        with self._lock:
            self._given_up = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def over(self) -> bool:
        return self._given_up or time.monotonic() > self.until

    def left(self) -> float:
        """Seconds, of which there may be none."""
        return max(0.0, self.until - time.monotonic())

    def check(self) -> None:
        """Raises VisitGivenUp if it was."""
        if self._given_up:
            raise VisitGivenUp

    def uses(self, found: socket.socket | None) -> None:
        """`found`: what `give_up` has to end. Raises VisitGivenUp."""
        with self._lock:
            self._socket = found
        self.check()


class _Http(http.client.HTTPConnection):
    default_port = http.client.HTTPS_PORT

    def __init__(self, source: FollowedSource, context: ssl.SSLContext, visit: VisitTime, bounds: SourceBounds) -> None:
        super().__init__(source.address.host, source.address.port)
        self._outbound = _ANYWHERE if source.trusted else _PUBLIC
        self._context, self._visit, self._bounds = context, visit, bounds
        self._allowance = time.thread_time() + bounds.cpu
        self.used = False

    def connect(self) -> None:
        until = min(self._visit.until, time.monotonic() + self._bounds.connect)
        self._visit.check()
        made = self._outbound.secured(self._context, self.host, self.port, until)
        assert isinstance(made, Metered)
        made.quiet, made.allowance = self._bounds.quiet, self._allowance
        self.sock, self.used = made, False
        self._visit.uses(made)


class SourceConnection:
    """Use it as a context. Requests come one after another, each after the answer before was read to its end."""

    def __init__(self, source: FollowedSource, visit: VisitTime, bounds: SourceBounds) -> None:
        """Raises SourceFault where the certificates are none."""
        self._source, self._visit, self._bounds = source, visit, bounds
        try:
            context = _context(source.credentials.ca)
        except ValueError as error:
            raise SourceFault("CertificateRefused", f"`caFile`: {error}", "put in the CA's certificate") from None
        self._http = _Http(source, context, visit, bounds)
        self._last: http.client.HTTPResponse | None = None

    def __enter__(self) -> SourceConnection:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(VisitGivenUp):
            self._visit.uses(None)
        self.close()

    def ask(self, request: SourceRequest, until: float) -> SourceAnswer:
        """The answer as soon as its headers are there; it has to be read within `until`. Raises SourceFault and
        VisitGivenUp."""
        if self._last is not None and not self._last.isclosed():
            self.close()  # nobody wants the rest of it
        try:
            response = self._last = self._sent(request, until)
        except TRANSPORT as error:
            raise self.failure(error) from None
        if response.status != 200:
            self.close()
            raise self._refused(response, request)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != request.accept or response.headers.get("Content-Encoding", "identity") != "identity":
            self.close()
            what = "what answers at the repository's URL is no git server"
            raise SourceFault("NotARepository", what, "check the URL: it has to be one that git clones by https")
        return SourceAnswer(response, self)

    def close(self) -> None:
        """The next request takes another connection."""
        if self._last is not None:
            self._last.close()
        self._http.close()

    def failure(self, error: Exception) -> Exception:
        """What an error of the connection comes to."""
        self.close()
        try:
            self._visit.check()
        except VisitGivenUp as given_up:
            return given_up
        return of_transport(error, self._source.remedy)

    def _refused(self, response: http.client.HTTPResponse, request: SourceRequest) -> SourceFault:
        moved = redirects.told(self._source.address, request.path, response.headers.get("Location", ""))
        credentials = self._source.credentials
        if credentials.stand_in(moved):
            moved = ""
        return of_status(response.status, bool(credentials.header()), moved)

    def _sent(self, request: SourceRequest, until: float) -> http.client.HTTPResponse:
        for again in (True, False):
            if self._http.sock is None:
                self._http.connect()
            assert isinstance(self._http.sock, Timed)
            self._http.sock.until = min(self._visit.until, until)
            kept = self._http.used
            self._http.used = True
            try:
                return self._once(request)
            except (ConnectionError, http.client.RemoteDisconnected):
                self._http.close()
                if not (kept and again):  # a connection that was kept may have ended meanwhile
                    raise
        raise AssertionError("unreachable")

    def _once(self, request: SourceRequest) -> http.client.HTTPResponse:
        heads = {"User-Agent": "git/treeplane", "Accept": request.accept, "Accept-Encoding": "identity"}
        heads |= {"Git-Protocol": "version=2"}
        if said := self._source.credentials.header():
            heads["Authorization"] = said
        if request.body is not None:
            heads["Content-Type"] = request.accept.replace("-result", "-request")
        method = "GET" if request.body is None else "POST"
        self._http.request(method, self._source.address.path + request.path, request.body, heads)
        return self._http.getresponse()


class SourceAnswer:
    """One that is 200 and of the type that was asked for."""

    def __init__(self, response: http.client.HTTPResponse, connection: SourceConnection) -> None:
        self._response, self._connection = response, connection

    def read(self, size: int) -> bytes:
        """So many bytes, less at the end alone. Raises SourceFault and VisitGivenUp."""
        try:
            return self._response.read(size)
        except TRANSPORT as error:
            raise self._connection.failure(error) from None

    def end(self) -> None:
        """For one of which all was read that is of interest: what may be behind it ends the connection."""
        if self.read(1):
            self._connection.close()


@lru_cache(_CONTEXTS)
def _context(ca: bytes) -> ssl.SSLContext:
    """Reading the certificates of a system takes longer than a look."""
    found = trusting(ca)
    found.sslsocket_class = Metered
    return found

"""TLS for the event loop by OpenSSL itself: client certificates are asked for, and left for others to judge.

Python's `ssl` ends a connection whose client shows a certificate that is expired or of another authority, where
kube-apiserver answers 401. OpenSSL leaves that to a callback, which `ssl` does not offer and pyOpenSSL does. The
handshake still proves that the client holds the key of what it shows. Used by worker.py; with openssl_channel.py, which
has one connection, the only door to pyOpenSSL.
"""

from __future__ import annotations

import logging
import ssl
import weakref
from pathlib import Path
from typing import Any

from OpenSSL import SSL

from apiserver.auth.files import Stamp, stamp
from apiserver.auth.keys import OWN_NAME, Keys, Pair
from apiserver.auth.pki_clients import authorities_in
from apiserver.auth.pki_serving import ServerNames, ServingFiles, ServingPair
from apiserver.openssl_channel import Channel

log = logging.getLogger(__name__)

_RELEASE_BUFFERS = 0x10
"""SSL_MODE_RELEASE_BUFFERS: an idle connection, as most watches are, keeps none."""


class ServerTLS(ssl.SSLContext):
    """What an event loop takes as its context: it asks for the type, and calls `wrap_bio` for each connection.

    Certificates are read again when their files have changed, so that a renewed one counts from the next connection on.
    With a certificate that was `given` there are two. Whoever asks for a name that only the server's own certificate
    has gets that one: the server's own processes, and whoever knows it by an address of its machine. All others get the
    one that was given.
    """

    def __new__(cls, keys: Keys, *more: Path, given: Pair | None = None) -> ServerTLS:  # noqa: ARG004 (for __init__)
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, keys: Keys, *more: Path, given: Pair | None = None) -> None:
        """`more`: files with CAs of clients besides the fleet's. Clients are told them, since some show no other's
        certificate. Raises ValueError where the server's own certificate and key cannot be read or do not belong
        together; of those that were given `given.problem` says it, and until they fit the own one counts."""
        self._keys = keys
        self._authorities = (keys.ca, *more)
        self.given = None if given is None else ServingFiles(given, self._of_given)
        self._own_names = ServerNames(frozenset(), frozenset())
        self._stamps = self._look()
        self._context = self._of_own()
        self._own = _Own(self)
        if self.given is not None:
            self.given.look()

    def at(self, address: str) -> ssl.SSLContext:
        """For a connection to `address`, which counts as the name that its client asks for if it names none."""
        return self._own if self.given is not None and self.is_own(address) else self

    def is_own(self, host: str) -> bool:
        """Whether clients that know the server as `host` are shown its own certificate."""
        pair = None if self.given is None else self.given.pair
        return pair is None or host == OWN_NAME or (not pair.names.have(host) and self._own_names.have(host))

    def wrap_bio(self, incoming: Any, outgoing: Any, *_: Any, **__: Any) -> Any:
        """A Handshake that became a connection; the arguments are those of ssl.SSLContext.wrap_bio."""
        return self.channel(incoming, outgoing, own=False)

    def channel(self, incoming: Any, outgoing: Any, *, own: bool) -> Channel:
        """`own`: with the server's own certificate, if the client does not say otherwise."""
        self._refresh()
        connection = SSL.Connection(self._chosen(own=own), None)
        connection.set_accept_state()
        return Channel(connection, incoming, outgoing)

    def _chosen(self, *, own: bool) -> SSL.Context:
        made = None if self.given is None or own else self.given.made
        return self._context if made is None else made

    def _by_name(self, connection: SSL.Connection) -> None:
        """Called by OpenSSL within a handshake, where there are two certificates."""
        name = connection.get_servername()
        if name:
            connection.set_context(self._chosen(own=self.is_own(name.decode("ascii", "replace"))))

    def _look(self) -> tuple[Stamp | None, ...]:
        pair = self._keys.server
        return tuple(map(stamp, (pair.certificate, pair.key, *self._authorities)))

    def _refresh(self) -> None:
        """A pair that is half written stays unread until its other half has changed too."""
        if self.given is not None and self.given.look():
            log.info("%s was read again", self.given.files.certificate)
        stamps = self._look()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self._context = self._of_own()
            if self.given is not None:
                self.given.again()
        except ValueError as error:
            log.warning("the server's certificate is not read again, the one it had counts on: %s", error)

    def _of_own(self) -> SSL.Context:
        pair, context = self._keys.server, SSL.Context(SSL.TLS_SERVER_METHOD)
        try:
            context.use_certificate_chain_file(str(pair.certificate))
            context.use_privatekey_file(str(pair.key))
            context.check_privatekey()
            self._complete(context)
            names = ServerNames.of(authorities_in(pair.certificate)[0])
        except (SSL.Error, OSError) as error:
            raise ValueError(f"{pair.certificate} and {pair.key} cannot be used: {error}") from error
        self._own_names = names
        return context

    def _of_given(self, pair: ServingPair) -> SSL.Context:
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        try:
            context.use_certificate(pair.chain[0])
            for each in pair.chain[1:]:
                context.add_extra_chain_cert(each)
            context.use_privatekey(pair.key)
            context.check_privatekey()
            self._complete(context)
        except (SSL.Error, OSError, TypeError) as error:
            raise ValueError(f"OpenSSL does not take the certificate or its key: {error}") from error
        return context

    def _complete(self, context: SSL.Context) -> None:
        """What is the same whichever certificate is shown. Raises SSL.Error, OSError and ValueError."""
        context.set_min_proto_version(SSL.TLS1_2_VERSION)
        for each in self._authorities:
            for authority in authorities_in(each):
                context.add_client_ca(authority)
        context.set_verify(SSL.VERIFY_PEER, _leave_to_others)
        # What a resumed session remembers of a client would count beyond its certificate's end.
        context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_RENEGOTIATION)
        context.set_mode(_RELEASE_BUFFERS)
        context.set_alpn_select_callback(_choose)
        if self.given is not None:
            context.set_tlsext_servername_callback(self._by_name)


class _Own(ssl.SSLContext):
    """Of a ServerTLS, for connections that begin with its own certificate."""

    def __new__(cls, tls: ServerTLS) -> _Own:  # noqa: ARG004 (for __init__)
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, tls: ServerTLS) -> None:
        self._tls = weakref.proxy(tls)

    def wrap_bio(self, incoming: Any, outgoing: Any, *_: Any, **__: Any) -> Any:
        return self._tls.channel(incoming, outgoing, own=True)


def _leave_to_others(*_: object) -> bool:
    return True


def _choose(_connection: SSL.Connection, offered: list[bytes]) -> Any:
    return b"http/1.1" if b"http/1.1" in offered else SSL.NO_OVERLAPPING_PROTOCOLS

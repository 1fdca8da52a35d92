"""One connection with TLS by OpenSSL itself, as an event loop wants it. Made by openssl.py, used by tls.py for whose
certificate it shows; with openssl.py the only door to pyOpenSSL."""

from __future__ import annotations

import contextlib
import re
import ssl
from typing import TYPE_CHECKING

from OpenSSL import SSL

if TYPE_CHECKING:
    from cryptography import x509

_RECORD = 16 * 1024
"""Bytes of plain text in one record of TLS."""
_PIECE = 256 * 1024
"""Bytes that are encrypted before they are handed on."""
_AROUND = 1024
"""Bytes that TLS adds to as many, at most."""
_PLAIN = re.compile(rb"[A-Z]{3,16} [!-~]{1,4096} HTTP/1\.[01]\r?\n")
_SENTENCE = b"This is the HTTPS port, and the request was plain HTTP: write https:// where it says http://.\n"
_ANSWER = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%b" % (len(_SENTENCE), _SENTENCE)
)
"""To whom speaks plain HTTP."""


class Channel:
    """One connection, as an event loop uses ssl.SSLObject: encrypted bytes come and go by two ssl.MemoryBIO."""

    __slots__ = ("_begun", "_connection", "_count", "_ended", "_incoming", "_missing", "_outgoing", "_plain", "_single")

    def __init__(self, connection: SSL.Connection, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._connection = connection
        self._incoming = incoming
        self._outgoing = outgoing
        self._begun = False
        self._plain: list[bytes] = []
        self._count = 0
        self._ended = False
        self._missing = 0  # bytes of the record that has begun; -1: its length has not come whole, so nobody counts on
        self._single = False

    def shown(self) -> tuple[x509.Certificate, list[x509.Certificate]] | None:
        """The client's certificate and the others that it sent; None if it showed none. Raises ValueError for one that
        cannot be read."""
        leaf = self._connection.get_peer_certificate(as_cryptography=True)
        if leaf is None:
            return None
        return leaf, list(self._connection.get_peer_cert_chain(as_cryptography=True) or ())

    def do_handshake(self) -> None:
        """Raises ssl.SSLWantReadError until it is through, ssl.SSLError where it fails.

        Plain HTTP is answered with a sentence, once. Its client has all of it and closes; one that does not, or goes on
        to send, ends as any whose handshake fails or takes too long."""
        begun, come = self._begun, self._take()
        self._begun = begun or bool(come)
        try:
            self._connection.do_handshake()
            self._decrypt()  # a request may have come right behind it
        except SSL.WantReadError:
            raise ssl.SSLWantReadError from None
        except SSL.Error as error:
            if not begun and _PLAIN.match(come):
                with contextlib.suppress(SSL.WantReadError):
                    self._connection.bio_read(_RECORD)  # an alert of TLS says nothing to who does not speak it
                self._outgoing.write(_ANSWER)
                raise ssl.SSLWantReadError from None  # so that the loop sends it
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"handshake failed: {error}") from error
        finally:
            self._give()

    def read(self, _most: int = 0, _buffer: None = None) -> bytes:
        """All that has come, however much; b"" at the end. Raises ssl.SSLWantReadError where there is nothing yet."""
        self._take()
        try:
            if self._single and not self._plain:
                # The usual case, a request or an answer to one: a record, and nothing before or after it.
                self._single = False
                return self._connection.recv(_RECORD)
            self._decrypt()
        except SSL.WantReadError:
            raise ssl.SSLWantReadError from None
        except SSL.ZeroReturnError:
            self._ended = True
            return b""
        except SSL.Error as error:
            self._give()  # what is said of it
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"reading failed: {error}") from error
        parts, self._plain, self._count = self._plain, [], 0
        if not parts and not self._ended:
            raise ssl.SSLWantReadError
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def pending(self) -> int:
        """How much there is to read without anything more coming; the end counts as something."""
        return self._count + self._ended

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """How much of `data` was taken."""
        most = len(data)
        if most > _RECORD:
            most = min(most, _PIECE)
            data = memoryview(data)[:most]
        sent = 0
        try:
            while sent < most:
                sent += self._connection.send(data[sent:] if sent else data)
        except SSL.WantReadError:
            pass
        except SSL.Error as error:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"writing failed: {error}") from error
        finally:
            self._give(most + _AROUND)
        return sent

    def unwrap(self) -> None:
        """Says goodbye. Raises ssl.SSLWantReadError until the other side has, too."""
        try:
            done = self._connection.shutdown()
        except SSL.WantReadError:
            done = False
        except SSL.Error as error:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"closing failed: {error}") from error
        finally:
            self._give()
        if not done:
            raise ssl.SSLWantReadError

    def version(self) -> str:
        return self._connection.get_protocol_version_name()

    def cipher(self) -> tuple[str | None, str | None, int | None]:
        found = self._connection
        return found.get_cipher_name(), found.get_cipher_version(), found.get_cipher_bits()

    @staticmethod
    def compression() -> None:
        return None

    @staticmethod
    def getpeercert() -> None:
        """Event loops keep it; who wants it asks `shown`, which says nothing of whether it counts."""
        return

    def _take(self) -> bytes:
        data = self._incoming.read()
        if data:
            self._connection.bio_write(data)
            self._single = not self._missing and len(data) == 5 + int.from_bytes(data[3:5], "big")
            if not self._single and self._missing >= 0:
                self._count_records(data)
        return data

    def _count_records(self, data: bytes) -> None:
        at, end = self._missing, len(data)
        while at + 5 <= end:
            at += 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        self._missing = at - end if at >= end else -1

    def _decrypt(self) -> None:
        """All that was taken, so that nothing stays where an event loop does not see it."""
        try:
            while True:
                part = self._connection.recv(_RECORD)
                self._plain.append(part)
                self._count += len(part)
        except SSL.WantReadError:
            return
        except SSL.ZeroReturnError:
            self._ended = True

    def _give(self, size: int = _RECORD) -> None:
        """`size`: more than there is, if it is known."""
        try:
            while True:
                data = self._connection.bio_read(size)
                self._outgoing.write(data)
                if len(data) < size:
                    return
        except SSL.WantReadError:
            return

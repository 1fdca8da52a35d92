"""The one way out: secured connections to addresses that tenants name.

Whoever may write a webhook's definition, a sync target's kubeconfig or where a workspace has its content from chooses
where this server sends requests, from inside its network. So connections go to addresses of the public internet alone,
and to networks that whoever runs the server lets in: at each connection the name is looked up once, what it stands for
is checked, and it is that address which is connected to. No proxy is asked, no environment variable and no file is
read. What is sent is posting.py's (webhooks) and the reconciler's: syncing/https.py's (sync targets) and
sourcing/connection.py's (tenants' repositories).
"""

from __future__ import annotations

import ipaddress
import math
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that is given out of IPv6; what is beside it is local in one way or another."""
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

EVERYWHERE = ("0.0.0.0/0", "::/0")
"""As networks that are let in: the check is lifted."""


class NotAllowed(Exception):
    """The address is inside. The text does not tell what a name stands for: that may be the network's own matter."""


class Timed(ssl.SSLSocket):
    """A secured connection on which no read and no write outlasts `until` (of time.monotonic), and none hears nothing
    for `quiet` seconds: one who answers drop by drop holds a thread no longer than one who does not answer."""

    until: float = math.inf
    quiet: float = math.inf

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        self.settimeout(min(self.quiet, left(self.until)))
        return super().recv_into(buffer, nbytes, flags)

    def send(self, data: ReadableBuffer, flags: int = 0) -> int:
        self.settimeout(min(self.quiet, left(self.until)))
        return super().send(data, flags)


class Outbound:
    """`allowed`: networks besides the public internet (`10.0.0.0/8`). Raises ValueError for what is none."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = tuple(ipaddress.ip_network(text) for text in allowed)

    def secured(
        self, context: ssl.SSLContext, host: str, port: int, until: float, *,
        at: Sequence[tuple[str, int]] = (), name: str = "", first: bytes = b"",
    ) -> Timed:  # fmt: skip
        """A connection to `host` whose certificate is one for `name` ("": the host). `context`: made by `trusting`.
        `at`: where to connect, instead of what the host stands for: pairs of an IP address and a port. `first`: what is
        sent before TLS. `until`: when it has to stand, and the socket's own limit at first. Raises NotAllowed, and
        OSError where nobody answers."""
        plain = self._connected(host, port, at, until)
        try:
            plain.settimeout(left(until))
            if first:
                plain.sendall(first)
            secured = context.wrap_socket(plain, server_hostname=name or host)
        except BaseException:
            plain.close()
            raise
        assert isinstance(secured, Timed)
        secured.until = until
        return secured

    def require(self, host: str, port: int) -> None:
        """That all that a name stands for just now may be connected to. Raises NotAllowed, and OSError where it stands
        for nothing."""
        for address, _ in _looked_up(host, port):
            self._check(address, host)

    def _connected(self, host: str, port: int, given: Sequence[tuple[str, int]], until: float) -> socket.socket:
        last: OSError | None = None
        for address, number in given or _looked_up(host, port):
            self._check(address, address if given else host)
            try:
                found = socket.create_connection((address, number), timeout=left(until))
            except OSError as error:
                last = error
            else:
                # A request is sent in two pieces, head and body. Nagle's algorithm would hold the second back until
                # the other side has acknowledged the first, which it delays by 40 ms.
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return found
        raise last or OSError(f"no address for {host}")

    def _check(self, text: str, told: str) -> None:
        address = ipaddress.ip_address(text)
        if any(address.version == network.version and address in network for network in self._allowed):
            return
        if not all(_is_public(one) for one in _meant(address)):
            raise NotAllowed(
                f"{told} is not allowed: it is not of the public internet, nor of a network that is let in"
            )


def trusting(ca: bytes) -> ssl.SSLContext:
    """For connections to whom these certificates (PEM) vouch for; b"": those of the system. Raises ValueError.

    As strict as Go's clients are, with which the other sides were tried: a certificate that was given may be an
    intermediate one, and need not say all that RFC 5280 asks for.
    """
    try:
        context = ssl.create_default_context(cadata=ca.decode("ascii") if ca else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError("it holds no certificate in PEM form") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.sslsocket_class = Timed
    return context


def left(until: float) -> float:
    """Seconds until then. Raises TimeoutError where there are none."""
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("deadline exceeded")
    return seconds


def _looked_up(host: str, port: int) -> Iterator[tuple[str, int]]:
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        yield str(address[0]).partition("%")[0], port


def _meant(address: Address) -> list[Address]:
    """The address, and those that it carries inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address in _NAT64:
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address, *(one for one in (address.sixtofour, *(address.teredo or ())) if one is not None)]


def _is_public(address: Address) -> bool:
    local = isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST
    return address.is_global and not address.is_multicast and not local

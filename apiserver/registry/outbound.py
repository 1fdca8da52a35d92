"""The one way out: HTTPS requests to addresses that tenants name, for webhooks.

Whoever may write a definition chooses where this server sends requests, from inside its network. So a request goes to
addresses of the public internet alone, and to networks that the server's settings allow: a name is looked up once, what
it stands for is checked, and it is that address which is connected to. Nothing is redirected, no proxy is asked, no
answer is quoted to the tenant. Synchronous, with one deadline for the whole request.
"""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

SECONDS = 30.0
"""For a whole request, as kube-apiserver gives a conversion webhook."""

_MOST = 64 * 1024 * 1024
_PIECE = 256 * 1024
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_TIMEOUT = f"timeout={int(SECONDS)}s"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Failed(Exception):
    """The request has no answer; the text says why, for people. `remote`: it may be the other side's fault."""

    def __init__(self, why: str, *, remote: bool = True) -> None:
        super().__init__(why)
        self.remote = remote


class Target(NamedTuple):
    """`url`: https, without query. `at`: where to connect, instead of what the URL's host stands for: pairs of an IP
    address and a port. `ca`: PEM certificates to trust; b"": those of the system."""

    url: str
    ca: bytes = b""
    at: tuple[tuple[str, int], ...] = ()


class Outbound:
    """`allowed`: networks besides the public internet (`10.0.0.0/8`). Raises ValueError for what is none."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._allowed = tuple(ipaddress.ip_network(text) for text in allowed)

    def post(self, target: Target, body: bytes, seconds: float = SECONDS) -> bytes:
        """The answer's body. Raises Failed."""
        try:
            return self._post(target, body, time.monotonic() + seconds)
        except Failed as error:
            raise Failed(f'Post "{target.url}?{_TIMEOUT}": {error}', remote=error.remote) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Failed(f'Post "{target.url}?{_TIMEOUT}": {_told(error)}') from None

    def _post(self, target: Target, body: bytes, until: float) -> bytes:
        parts = urlsplit(target.url)
        host, path = parts.hostname or "", parts.path or "/"
        context = _context(target.ca)
        with self._connected(host, parts.port or 443, target.at, until) as plain:
            plain.settimeout(_left(until))
            with context.wrap_socket(plain, server_hostname=host) as secured:
                connection = http.client.HTTPConnection(host, parts.port or 443)
                connection.sock = secured
                headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
                connection.request("POST", f"{path}?{_TIMEOUT}", body, headers)
                secured.settimeout(_left(until))
                answer = connection.getresponse()
                if answer.status != 200:
                    raise Failed(f"it answered with status {answer.status}")
                return b"".join(_pieces(answer, secured, until))

    def _connected(self, host: str, port: int, given: tuple[tuple[str, int], ...], until: float) -> socket.socket:
        last: OSError | None = None
        for address, number in given or _looked_up(host, port):
            self._check(address)
            try:
                return socket.create_connection((address, number), timeout=_left(until))
            except OSError as error:
                last = error
        raise last or Failed(f"no address for {host}")

    def _check(self, text: str) -> None:
        address = ipaddress.ip_address(text)
        if any(address.version == network.version and address in network for network in self._allowed):
            return
        if not all(_is_public(one) for one in _meant(address)):
            why = f"address {text} is not allowed: it is not of the public internet, nor of a network that is let in"
            raise Failed(why, remote=False)


def _looked_up(host: str, port: int) -> Iterator[tuple[str, int]]:
    for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        yield str(address[0]).partition("%")[0], port


def _meant(address: Address) -> list[Address]:
    """The address, and those that it carries inside."""
    found: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        inside = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inside.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        carried = [one for one in inside if one is not None]
        if address.ipv4_mapped is not None:
            return list(carried)
        found += carried
    return found


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("deadline exceeded")
    return left


def _pieces(answer: http.client.HTTPResponse, secured: ssl.SSLSocket, until: float) -> Iterator[bytes]:
    """In pieces, so that one who answers drop by drop does not hold a thread beyond the deadline."""
    size = 0
    while True:
        secured.settimeout(_left(until))
        piece = answer.read1(_PIECE)
        if not piece:
            return
        size += len(piece)
        if size > _MOST:
            raise Failed(f"its answer is larger than {_MOST} bytes")
        yield piece


@lru_cache(256)
def _context(ca: bytes) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=ca.decode() if ca else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise Failed(f"caBundle cannot be used: {_told(error)}", remote=False) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


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

"""The PROXY protocol, versions 1 and 2: what a proxy that passes bytes on says of its client, before all else.

Used by accepting.py for connections from networks that are named (`--proxy-protocol-network`): of anybody else it is no
header but bytes that are no TLS. What it says is a name of an address, never of a user. Pure, but for `receive`.
https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
"""How version 2 begins."""
LOCAL = SIGNATURE + b"\x20\0\0\0"
"""Version 2, of a connection that is the sender's own."""
_WORD = b"PROXY "
_FIRST = len(SIGNATURE)
_HEAD = 16
"""Bytes of version 2 before the addresses."""
_LONGEST_LINE = 107
_MOST = 4096
"""Bytes of version 2 that are read; with all that HAProxy and nginx can be told to add it is a few hundred."""
_LEAST = {b"PROXY TCP4 ": 32, b"PROXY TCP6 ": 22, b"PROXY UNKNOWN": 15}
"""How version 1 goes on, and how long it is at least."""
_LINE = re.compile(
    rb"PROXY TCP(?P<version>[46]) (?P<client>[0-9A-Fa-f.:]+) (?P<reached>[0-9A-Fa-f.:]+) "
    rb"(?P<port>0|[1-9][0-9]{0,4}) (?P<to>0|[1-9][0-9]{0,4})\r\n"
)
_UNKNOWN = re.compile(rb"PROXY UNKNOWN( [^\r\n]*)?\r\n")
_MAPPED = IPv6Network("::ffff:0:0/96")


class NotProxied(Exception):
    """No header of the protocol, or one that says what cannot be."""


class Proxied(NamedTuple):
    """`host`, `port`: the client's. `reached`: the address that it connected to."""

    host: str
    port: int
    reached: str


class Proxies:
    """Networks whose connections have to begin with a header. Raises ValueError for a text that is none."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = tuple(map(_plain, networks))
        self._known = lru_cache(1024)(self._has)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def have(self, host: str) -> bool:
        """Whether a connection from this address has to."""
        return bool(self._networks) and self._known(host)

    def _has(self, host: str) -> bool:
        try:
            address = unmapped(host)
        except ValueError:
            return False
        return any(address.version == each.version and address in each for each in self._networks)


def unmapped(host: str) -> IPv4Address | IPv6Address:
    """An IPv4 address that is written as an IPv6 one is the IPv4 one. Raises ValueError."""
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def _plain(text: str) -> IPv4Network | IPv6Network:
    network = ip_network(text)
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


async def receive(connection: socket.socket) -> bytes:
    """The header and not a byte of what follows it, which is for TLS. Raises NotProxied, and OSError."""
    import asyncio  # noqa: PLC0415 - who reads networks here may have no loop, and starts before all others

    loop, head = asyncio.get_running_loop(), b""
    while count := missing(head):
        part = await loop.sock_recv(connection, count)
        if not part:
            raise NotProxied(f"it ended after {len(head)} bytes")
        head += part
    return head


def missing(head: bytes) -> int:
    """How many more bytes belong to a header that begins so, at least; 0: it is whole. Raises NotProxied."""
    if SIGNATURE.startswith(head[:_FIRST]) or head.startswith(SIGNATURE):
        if len(head) < _HEAD:
            return (_HEAD if len(head) >= _FIRST else _FIRST) - len(head)
        whole = _HEAD + int.from_bytes(head[14:16], "big")
        if whole > _MOST:
            raise NotProxied(f"its header is longer than {_MOST} bytes")
        return whole - len(head)
    if not (_WORD.startswith(head) or head.startswith(_WORD)):
        raise NotProxied("it does not begin with a header")
    if len(head) < _FIRST:
        return _FIRST - len(head)
    for begin, least in _LEAST.items():
        if begin.startswith(head) or head.startswith(begin):
            return max(least - len(head), _to_the_end(head))
    raise NotProxied("its header is of a kind that does not exist")


def _to_the_end(line: bytes) -> int:
    if line.endswith(b"\r\n"):
        return 0
    if b"\n" in line or len(line) >= _LONGEST_LINE:
        raise NotProxied(f"its header has no end of line within {_LONGEST_LINE} bytes")
    return 1 if line.endswith(b"\r") else 2


def read(head: bytes) -> Proxied | None:
    """What a whole header says; None: nothing, so the connection's own addresses count (a proxy's own connection, as
    for a health check, or a client whose address it does not know). Raises NotProxied."""
    return _binary(head) if head.startswith(SIGNATURE) else _text(head)


def _text(head: bytes) -> Proxied | None:
    if _UNKNOWN.fullmatch(head):
        return None
    found = _LINE.fullmatch(head)
    if found is None:
        raise NotProxied("its header cannot be read")
    kind = IPv4Address if found["version"] == b"4" else IPv6Address
    try:
        client, reached = (kind(found[name].decode()) for name in ("client", "reached"))
    except ValueError:
        raise NotProxied("its header names what is no address") from None
    port = int(found["port"])
    if max(port, int(found["to"])) > 0xFFFF:
        raise NotProxied("its header names what is no port")
    return Proxied(str(client), port, str(reached))


def _binary(head: bytes) -> Proxied | None:
    command, family, said = head[12], head[13], head[_HEAD:]
    if command == 0x20:  # LOCAL, whatever else it says
        return None
    if command != 0x21:
        raise NotProxied("its header is of a version or command that does not exist")
    if family in (0x00, 0x31):  # unspecified; a socket of the proxy's own machine
        return None
    if family not in (0x11, 0x21):
        raise NotProxied("its header is of no TCP connection")
    size, kind = (4, IPv4Address) if family == 0x11 else (16, IPv6Address)
    if len(said) < 2 * size + 4:
        raise NotProxied("its header is too short for its addresses")
    client, reached = kind(said[:size]), kind(said[size : 2 * size])
    return Proxied(str(client), int.from_bytes(said[2 * size : 2 * size + 2], "big"), str(reached))

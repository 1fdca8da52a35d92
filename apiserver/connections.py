"""The connections of one worker: how many a client may have, and how long each may keep the server waiting.

Made by worker.py. accepting.py asks it before TLS begins; patience.py's protocols join it and say what they wait for.
One timer looks at all of them, a few hundred at a time: what a request costs does not grow by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple, Protocol

from apiserver.metrics.requests import CONNECTIONS, CONNECTIONS_REFUSED
from apiserver.settings import ServerSettings

log = logging.getLogger(__name__)

_TOLD = 16
"""Connections beyond the bound that are taken to tell their clients so; more are closed as they come."""
_CLOSING_SECONDS = 15.0
"""How long a client may take to notice that its connection ends."""
_AT_ONCE = 200
_QUIET_SECONDS = 60.0


class Phase(Enum):
    """What a connection waits for."""

    HEAD = "a request's head"
    BODY = "the rest of a request"
    REST = "the rest of a request that is answered already"
    TAKING = "its client to take what it is sent"
    IDLE = "another request"
    END = "its client to let go"


class Waiting(NamedTuple):
    """`mark` changes whenever the client does something about it."""

    phase: Phase
    mark: Hashable = None


class Connection(Protocol):
    """As patience.py has them."""

    def waiting(self) -> Waiting | None:
        """What the client owes; None: the server is at work, or waits of its own will as in a watch."""

    def overdue(self, phase: Phase) -> None:
        """The time for it is up: end the connection."""


@dataclass(slots=True)
class Seat:
    """Of one connection, from the moment it is accepted. `address`: what counts as one client (see `network`). `host`,
    `port`: of this one. `refused`: there are too many, and it is only told so."""

    address: str
    host: str
    port: int
    refused: bool = False
    joined: bool = False


@dataclass(slots=True)
class Connections:
    """`count`: all there are."""

    settings: ServerSettings
    count: int = 0
    _by_address: Counter[str] = field(default_factory=Counter)
    _waiting: dict[Connection, tuple[Waiting | None, float]] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None
    _quiet_until: float = 0.0

    def enter(self, host: str, port: int = 0) -> Seat | None:
        """A place for a connection from `host`; None if it is to be closed at once."""
        address, most = network(host), self.settings.max_connections_per_address
        held = self._by_address[address] if most else 0
        if most and held >= most:
            CONNECTIONS_REFUSED.add()
            self._warn(address, held)
            if held >= most + _TOLD:
                return None
        self.count += 1
        CONNECTIONS.set(self.count)
        self._by_address[address] += 1
        return Seat(address, host, port, bool(most) and held >= most)

    def _warn(self, address: str, held: int) -> None:
        """Not for each: whoever connects could fill the log."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET_SECONDS
            log.warning("%s has %d connections, as many as one address may have", address, held)

    def leave(self, place: Seat) -> None:
        self.count -= 1
        CONNECTIONS.set(self.count)
        self._by_address[place.address] -= 1
        if not self._by_address[place.address]:
            del self._by_address[place.address]

    def join(self, connection: Connection, place: Seat) -> None:
        """TLS stands: from here on the connection is looked at."""
        place.joined = True
        self._waiting[connection] = (connection.waiting(), asyncio.get_running_loop().time())
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._look, [])

    def part(self, connection: Connection, place: Seat) -> None:
        """The connection is over."""
        if self._waiting.pop(connection, None) is not None:
            self.leave(place)

    def swap(self, old: Connection, new: Connection) -> None:
        """Another protocol goes on with a connection."""
        self._waiting[new] = self._waiting.pop(old)

    def seconds(self, phase: Phase) -> float:
        """How long a client may take."""
        settings = self.settings
        match phase:
            case Phase.HEAD | Phase.REST:
                return settings.head_seconds
            case Phase.IDLE:
                return settings.idle_seconds
            case Phase.END:
                return min(_CLOSING_SECONDS, settings.stall_seconds)
            case _:
                return settings.stall_seconds

    @property
    def _pause(self) -> float:
        return min(2.0, *(self.seconds(phase) / 5 for phase in Phase))

    def _look(self, left: list[Connection]) -> None:
        """At those that are `left` of a round, a few at a time; then a pause."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        left = left or list(self._waiting)
        for connection in left[:_AT_ONCE]:
            self._consider(connection, now)
        left = left[_AT_ONCE:]
        if left or self._waiting:
            self._timer = loop.call_later(0.005 if left else self._pause, self._look, left)
        else:
            self._timer = None

    def _consider(self, connection: Connection, now: float) -> None:
        known = self._waiting.get(connection)
        if known is None:
            return
        waiting = connection.waiting()
        before, since = known
        if waiting != before:
            self._waiting[connection] = waiting, now
        elif waiting is not None and now - since > self.seconds(waiting.phase):
            self._waiting[connection] = None, now
            connection.overdue(waiting.phase)


def network(host: str) -> str:
    """What counts as one client: an IPv4 address, or the 64 bits of an IPv6 address that one network has."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"

"""Under which names the server is reached: for its certificate and for what clients are told.

Called by `up`. A door to `psutil`, which knows the machine's addresses.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from apiserver.settings import listens_on_all

_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*\.?", re.IGNORECASE)


def names(host: str, external_url: str, more: Iterable[str]) -> list[str]:
    """What the server's certificate has to name besides this machine's own name and loopback: the address that is
    listened on (all of them, where that is all), the external URL's host, and `more`."""
    own = machine_addresses() if listens_on_all(host) else [host.partition("%")[0]]  # no link in a certificate
    told = urlsplit(external_url).hostname
    return list(dict.fromkeys([*own, *([told] if told else []), *more]))


def machine_addresses() -> list[str]:
    """Addresses at which another machine may reach this one: no loopback, none that count on one link alone."""
    import psutil  # noqa: PLC0415 - nobody is asked for them but who listens on all, and each start would wait for it

    found = [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6) and "%" not in address.address
    ]
    kept = (each for each in map(ip_address, found) if not (each.is_loopback or each.is_link_local))
    return sorted(map(str, kept))


def subject_name(text: str) -> str:
    """An address or DNS name as a certificate has it. Raises ValueError."""
    try:
        return str(ip_address(text))
    except ValueError:
        if not _NAME.fullmatch(text) or len(text) > 253:
            raise ValueError(f"{text!r} is neither an IP address nor a DNS name") from None
        return text.lower().rstrip(".")


def external_url(text: str) -> str:
    """`https://name[:port]`, without a slash at the end. Raises ValueError."""
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError(f"{text!r} is not https://NAME[:PORT]")
    if parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("it is the server's name and port alone: https://NAME[:PORT]")
    _ = parts.port  # raises ValueError
    subject_name(parts.hostname)
    return f"https://{parts.netloc}"

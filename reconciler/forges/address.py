"""Where a token may go: over TLS, or to this machine.

Called before anything is asked of a forge (forgeclient.py), with what somebody gave or what CI tells.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from reconciler.forges.errors import NotSaid


def checked(url: str) -> str:
    """The same, without a slash at its end. Raises NotSaid."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise NotSaid("the forge's URL has characters that no URL has", "give one like https://git.example.org")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise NotSaid(f"{url} is no URL", "give one like https://git.example.org") from None
    if "@" in parts.netloc:
        raise NotSaid("the forge's URL has a user or a password in it", "a token goes into the environment, or a file")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise NotSaid(f"{url} is no URL of a forge", "give one like https://git.example.org")
    if parts.scheme == "http" and not _is_here(host):
        raise NotSaid(f"{url} is not secured: whoever is on the way could read the token", "give an https:// URL")
    return url.rstrip("/")


def is_secured(url: str) -> bool:
    return url.lower().startswith("https:")


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""How texts of options are read that are more than any text, by the name that a field gives: apiserver/options.Option.

Called by options.py; a ValueError becomes the error of who typed it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from apiserver.admission.plugins import PLUGINS
from apiserver.model import paths
from reconciler.commands import addresses
from reconciler.commands.settings import Address
from reconciler.forges import address
from reconciler.forges.errors import NotSaid
from reconciler.repository import folder


@dataclass(frozen=True, slots=True)
class OptionForm:
    """`read`: the value of one text; raises ValueError with what is wrong about it. `joined`: one text is a list of all
    values, so the option is given once. `choices`: what its values can be; (): that is no list."""

    read: Callable[[str], Any]
    joined: bool = False
    choices: tuple[str, ...] = ()


def _address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


def _commit(text: str) -> str:
    if text and not re.fullmatch(r"[0-9a-f]{7,64}", text):
        raise ValueError(f"{text!r} is not the id of a commit, nor seven digits of it or more")
    return text


def _ip(text: str) -> str:
    return str(ip_address(text))


def _network(text: str) -> str:
    ip_network(text)
    return text


def _proxy(text: str) -> str:
    """What is wrong is said without the text, which may hold a password."""
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https", "socks5", "socks5h") and parts.hostname and parts.port is not None
    except ValueError:
        fits = None
    if text and not (fits and text.isascii() and text.isprintable() and parts.path in ("", "/")):
        raise ValueError("a proxy is a URL with a port, like http://proxy.example.org:3128")
    return text.rstrip("/")


def _workspace(text: str) -> str:
    if not paths.is_path(text):
        raise ValueError(f"{text!r} is not the path of a workspace, like root:infra:locations")
    return text


def _plugins(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    unknown = [name for name in names if name not in PLUGINS]
    if unknown:
        raise ValueError(f"no such plugin: {', '.join(unknown)}")
    return names


def _told(text: str) -> str:
    """A URL to which a token goes, or what is signed."""
    try:
        return address.checked(text) if text else ""
    except NotSaid as error:
        raise ValueError(f"{error.text}: {error.hint}") from None


def _led_to(text: str) -> str:
    parts = urlsplit(text)
    is_url = parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc and text.isascii()
    if text and not is_url:
        raise ValueError(f"{text!r} is no URL, like https://status.example.org/{{commit}}")
    return text


def _folder(text: str) -> str:
    found = folder.named(text)
    why = folder.unfit(found)
    if why:
        raise ValueError(f"{text!r} can be no folder of a fleet: {why}")
    return found


FORMS = {
    "": OptionForm(str),
    "address": OptionForm(_address),
    "commit": OptionForm(_commit),
    "ip": OptionForm(_ip),
    "folder": OptionForm(_folder),
    "forge": OptionForm(_told),
    "forge-target": OptionForm(_led_to),
    "https": OptionForm(lambda text: addresses.external_url(text) if text else ""),
    "name": OptionForm(addresses.subject_name),
    "network": OptionForm(_network),
    "proxy": OptionForm(_proxy),
    "plugins": OptionForm(_plugins, joined=True, choices=tuple(sorted(PLUGINS))),
    "texts": OptionForm(lambda text: tuple(filter(None, text.split(","))), joined=True),
    "workspace": OptionForm(_workspace),
}

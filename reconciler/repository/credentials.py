"""Credentials of a repository's URL: kept from argument lists, which everybody on the machine can read.

git hands a URL to its helper for http as an argument. So it gets one without user and password, and a credential helper
that has them from its environment. Called by access.py.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

_USER, _PASSWORD = "TREEPLANE_GIT_USER", "TREEPLANE_GIT_PASSWORD"
_HELPER = f'!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" "${_USER}" "${_PASSWORD}"; }}; f'


class BareUrl(NamedTuple):
    """A URL without credentials, the settings and the environment with which git finds them all the same."""

    url: str
    settings: dict[str, str]
    variables: dict[str, str]


def apart(url: str, username: str = "", token: str = "") -> BareUrl:
    """Of a URL of http or https that names somebody, or for which there is a token; any other is left as it is. The
    token is `username`'s, unless the URL says whose. What is behind the last `@` before the path is the host, so that a
    password may hold one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return BareUrl(url, {}, {})
    named, at, host = parts.netloc.rpartition("@")
    if parts.scheme.lower() not in ("http", "https") or not (at or token):
        return BareUrl(url, {}, {})
    user, _, password = (unquote(part) for part in named.partition(":"))
    bare = urlunsplit(parts._replace(netloc=host))
    # What the user has set up for other URLs does not count: these credentials were given for this one.
    settings = {"credential.helper": "", f"credential.{parts.scheme}://{host}.helper": _HELPER}
    return BareUrl(bare, settings, {_USER: user or username, _PASSWORD: password or token})

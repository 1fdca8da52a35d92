"""Where a workspace's content stands if that is a repository of its tenant's: address, credentials, and the name by
which commits of it go. All of it is a tenant's word, so it is judged here before anybody acts on it.

Called by whoever reads `spec.source` and its Secret, and by the room sourcing, which goes there. Pure.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from reconciler.repository.errors import RepositoryError

_LONGEST_URL, _LONGEST_BRANCH, _LONGEST_SECRET, _LARGEST_CA = 1024, 200, 16 * 1024, 256 * 1024
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?|[0-9a-f:.]{2,45}")
_PATH = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@=,#%-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@=,#%-]*)*")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KEYS = ("username", "password", "bearerToken", "caFile")
_NAME_DIGITS = 21

SOURCE_NAME = re.compile(r"s[a-z2-7]{21}")
"""What `source_name` gives, and no other directory among those of sources is called."""


class SourceRefused(RepositoryError):
    """An address or credentials that nobody goes anywhere with. No value of a Secret is in the text."""


class SourceAddress(NamedTuple):
    """`url`: as it was written, of https, without user, query or fragment. `host`: in lower case. `path`: without a
    slash at its end. Made by `address`."""

    url: str
    branch: str
    host: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class SourceCredentials:
    """`username` with `password`, or `token`, or neither. `ca`: PEM, b"" for the certificates of the system. Nothing of
    it is in its text."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca: bytes = field(default=b"", repr=False)

    def header(self) -> str:
        """What a request says as `Authorization`; "" where it says nothing."""
        if self.token:
            return f"Bearer {self.token}"
        if not self.username and not self.password:
            return ""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")

    def stand_in(self, text: str) -> bool:
        """Whether somebody who was told them says them again."""
        secrets = (self.password, self.token, self.header().rpartition(" ")[2].rstrip("="))
        return any(secret and secret in said for secret in secrets for said in (text, unquote(text)))


NO_CREDENTIALS = SourceCredentials()


def address(url: str, branch: str) -> SourceAddress:
    """Of a repository and a branch as a tenant writes them. Raises SourceRefused."""
    if len(url) > _LONGEST_URL:
        raise SourceRefused(f"the repository's URL is longer than {_LONGEST_URL} characters")
    host, port, path = _place(url)
    parts = branch.split("/")
    odd = ".." in branch or "@{" in branch or any(part.endswith((".lock", ".")) for part in parts)
    if len(branch) > _LONGEST_BRANCH or odd or not _BRANCH.fullmatch(branch):
        raise SourceRefused("the branch's name is not one that is followed", "name a branch like main or release/1.2")
    return SourceAddress(url, branch, host, port, path)


def credentials(data: Mapping[str, bytes]) -> SourceCredentials:
    """Of a Secret's data, decoded. Raises SourceRefused, whose text quotes no value."""
    username, password, token = (_text(data, key) for key in _KEYS[:3])
    ca = data.get("caFile", b"")
    if len(ca) > _LARGEST_CA:
        raise SourceRefused(f"`caFile` is larger than {_LARGEST_CA} bytes")
    if token and (username or password):
        raise SourceRefused("the Secret has `bearerToken` and `username` or `password`", "leave one of them out")
    if token and not _VISIBLE.fullmatch(token):
        raise SourceRefused("`bearerToken` has characters that no token has (a line's end?)")
    if ":" in username:
        raise SourceRefused("`username` has a colon, which HTTP does not allow")
    if _CONTROL.search(username) or _CONTROL.search(password):
        raise SourceRefused("`username` or `password` has a control character (a line's end?)")
    if not (token or username or password or ca):
        raise SourceRefused("the Secret has none of the keys that count", f"put in {', '.join(_KEYS)}")
    return SourceCredentials(username, password, token, ca)


def source_name(cluster: str, url: str) -> str:
    """How commits of the repository at `url` are called for the workspace with that logical cluster: another workspace
    or another URL is another name, so it finds no object of this one's. A letter and 21 of base32."""
    digest = hashlib.sha256(f"{cluster}\0{url}".encode()).digest()
    return "s" + base64.b32encode(digest).decode("ascii").lower()[:_NAME_DIGITS]


def same_place(one: str, other: str) -> bool:
    """Whether two URLs, of whatever kind (the second may be the fleet's own, with credentials, or as ssh takes it), say
    the same repository: host and path, however they are written."""
    first, second = _plain(one), _plain(other)
    return first == second and first != ("", "")


def _place(url: str) -> tuple[str, int, str]:
    hint = "name it like https://git.example.com/team/repository.git"
    if not _VISIBLE.fullmatch(url):  # of a line's end the standard library says nothing
        raise SourceRefused("the repository's URL has characters that no URL has", hint)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise SourceRefused("the repository is not a URL", hint) from None
    if parts.scheme.lower() != "https":
        raise SourceRefused("the repository is not a URL of https, and nothing else is followed", hint)
    if "@" in parts.netloc:
        raise SourceRefused("the repository's URL has a user in it", "put credentials into a Secret, as secretRef")
    if port == 0 or not _HOST.fullmatch(host) or parts.query or parts.fragment or "?" in url or "#" in url:
        raise SourceRefused("the repository's URL may have a host, a port and a path, and nothing else", hint)
    path = parts.path.rstrip("/")
    if not _PATH.fullmatch(path) or any(unquote(part) in (".", "..") for part in path.split("/")):
        raise SourceRefused("the repository's URL has no path that names a repository", hint)
    return host, port or 443, path


def _text(data: Mapping[str, bytes], key: str) -> str:
    value = data.get(key, b"")
    if len(value) > _LONGEST_SECRET:
        raise SourceRefused(f"`{key}` is longer than {_LONGEST_SECRET} bytes")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise SourceRefused(f"`{key}` is not UTF-8") from None


_SCP = re.compile(r"(?:[^@/:]+@)?([^@/:]+):(?!//)(.+)")


def _plain(url: str) -> tuple[str, str]:
    """(host, path) of any URL, or of `user@host:path`; nothing where it is neither."""
    scp = _SCP.fullmatch(url) if "://" not in url else None
    try:
        parts = urlsplit(f"ssh://{scp[1]}/{scp[2]}" if scp else url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return "", ""
    names = [name for name in unquote(parts.path).split("/") if name not in ("", ".")]
    path = "/".join(names).removesuffix(".git").lower()
    return (host, path) if host else ("", "")

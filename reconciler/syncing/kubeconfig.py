"""What of a sync target's kubeconfig counts: data of its current context, and nothing else. Pure.

A kubeconfig is a tenant's word, and client libraries obey it: they run programs (`exec`, `auth-provider`), read files
of the machine that they run on, ask proxies, trust anybody. So this reader knows the address, the certificates, the
token and the server's name. Whatever else would have an effect is refused by its name, with what to use instead; what
has none (another context, a namespace, extensions) is not looked at.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from apiserver.kubeyaml import document
from apiserver.kubeyaml.faults import Fault
from reconciler.syncing.errors import Unusable

Object = dict[str, Any]

_FLATTEN = "`kubectl config view --raw --flatten --minify` puts files in"
_PEOPLE = "make a ServiceAccount on the cluster and use its `token`, or `client-certificate-data` and `client-key-data`"
_CLUSTER = {
    "certificate-authority": f"use `certificate-authority-data`: {_FLATTEN}",
    "insecure-skip-tls-verify": "use `certificate-authority-data`, which may be the server's own certificate",
    "proxy-url": "name an address that needs no proxy as `server`",
}
_USER = {
    "exec": f"programs are not run: {_PEOPLE}",
    "auth-provider": f"programs are not run: {_PEOPLE}",
    "client-certificate": f"use `client-certificate-data`: {_FLATTEN}",
    "client-key": f"use `client-key-data`: {_FLATTEN}",
    "tokenFile": "files are not read: use `token`",
    "username": f"Kubernetes knows no passwords: {_PEOPLE}",
    "password": f"Kubernetes knows no passwords: {_PEOPLE}",
    **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), f"nobody is impersonated: {_PEOPLE}"),
}
"""What is refused, and what to use instead."""
_OF_CLUSTER = frozenset({"server", "certificate-authority-data", "tls-server-name"})
_OF_USER = frozenset({"client-certificate-data", "client-key-data", "token"})
_WITHOUT_EFFECT = frozenset({"extensions", "disable-compression"})

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
TOKEN = re.compile(r"[\x21-\x7e]+")
_NAME = re.compile(r"[\x20-\x7e]{1,60}")


@dataclass(frozen=True, slots=True)
class Access:
    """The way to a sync target. `path`: before those of the API, without a slash at its end. `ca`, `certificate`,
    `key`: PEM, b"" where nothing is said. `name`: what the server's certificate is for, where that is not the host."""

    host: str
    port: int
    path: str = ""
    name: str = ""
    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)


def read(kubeconfig: bytes) -> Access:
    """From YAML or JSON. Raises Unusable, whose text quotes no value."""
    try:
        content = document.first(kubeconfig)
    except Fault as fault:
        raise Unusable(f"the kubeconfig is not YAML (line {fault.line})") from None
    if not isinstance(content, dict):
        raise Unusable("the kubeconfig is not a mapping")
    current = _text(content, "current-context")
    if not current:
        raise Unusable("the kubeconfig says nothing as `current-context`")
    context = _named(content, "contexts", "context", current)
    cluster = _named(content, "clusters", "cluster", _text(context, "cluster"))
    user = _named(content, "users", "user", _text(context, "user"))
    refused = [*_refused(cluster, _OF_CLUSTER, _CLUSTER), *_refused(user, _OF_USER, _USER)]
    if refused:
        raise Unusable("the kubeconfig is refused for " + "; and for ".join(refused))
    return _access(cluster, user)


def _access(cluster: Object, user: Object) -> Access:
    host, port, path = _address(_text(cluster, "server"))
    certificate, key = _data(user, "client-certificate-data"), _data(user, "client-key-data")
    token, name = _text(user, "token"), _text(cluster, "tls-server-name")
    if bool(certificate) != bool(key):
        raise Unusable("`client-certificate-data` and `client-key-data` go together, and one of them is missing")
    if not certificate and not token:
        raise Unusable(f"the kubeconfig's user has no credentials: {_PEOPLE}")
    if token and not TOKEN.fullmatch(token):
        raise Unusable("`token` has characters that no token has (a line's end?)")
    if name and not _HOST.fullmatch(name):
        raise Unusable("`tls-server-name` is not the name of a server")
    ca = _data(cluster, "certificate-authority-data")
    return Access(host, port, path, name, ca, certificate, key, token)


def _refused(section: Mapping[str, Any], known: frozenset[str], instead: Mapping[str, str]) -> Iterable[str]:
    """What would have an effect and is none of the `known`."""
    for name, value in section.items():
        if name in known | _WITHOUT_EFFECT or value in (None, False, "", [], {}):
            continue
        shown = name if _NAME.fullmatch(name) else "a key that cannot be shown"
        yield f"`{shown}`: {instead.get(name) or 'only ' + ', '.join(sorted(known)) + ' are known'}"


def _address(server: str) -> tuple[str, int, str]:
    if server.startswith("http:"):
        raise Unusable("`server` is http: credentials go to https alone")
    try:
        parts = urlsplit(server)
        host, port = parts.hostname or "", parts.port or 443
    except ValueError:
        raise Unusable("`server` is not a URL") from None
    if parts.scheme != "https" or not _HOST.fullmatch(host):
        raise Unusable("`server` is not a URL like https://api.example.com:6443")
    if "@" in parts.netloc or parts.query or parts.fragment or not _PATH.fullmatch(parts.path):
        raise Unusable("`server` may have a host, a port and a path, and nothing else")
    return host, port, parts.path.rstrip("/")


def _named(content: Object, section: str, kind: str, name: str) -> Object:
    """The entry of that name: `{name: x, cluster: {…}}`."""
    entries = content.get(section)
    found = [e for e in entries if isinstance(e, dict) and e.get("name") == name] if isinstance(entries, list) else []
    entry = found[0].get(kind) if len(found) == 1 else None
    if not isinstance(entry, dict):
        raise Unusable(f"the kubeconfig's `{section}` has not exactly one {kind} of the name that it uses")
    return entry


def _text(section: Object, name: str) -> str:
    value = section.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unusable(f"`{name}` is not text")
    return value


def _data(section: Object, name: str) -> bytes:
    try:
        return base64.b64decode("".join(_text(section, name).split()), validate=True)
    except (binascii.Error, ValueError):
        raise Unusable(f"`{name}` is not base64") from None

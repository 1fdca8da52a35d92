"""GET over HTTPS with a kubeconfig's credentials, with nothing but the standard library.

Used by kubectl_ws.py, which has to start quickly; programs that stay use the syncer's client.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import json
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.commands.kubeconfigs import Credentials, Entry, KubeconfigError

_SECONDS = 30


class Unreachable(Exception):
    """No answer; the message names the server and why."""


class Answer(NamedTuple):
    """`object` is {} where the body is no JSON object."""

    status: int
    object: dict[str, Any]


class Client:
    """Of one server."""

    def __init__(self, base: str, credentials: Credentials) -> None:
        """Raises KubeconfigError for credentials that cannot be read or are of a kind not supported."""
        self._base = base
        self._headers = {"Accept": "application/json", "User-Agent": "kubectl-ws", **_token(credentials.user)}
        handler = urllib.request.HTTPSHandler(context=_context(credentials))
        self._opener = urllib.request.build_opener(handler)

    def get(self, path: str, query: dict[str, str] | None = None) -> Answer:
        """Raises Unreachable. `query`: empty values are left out."""
        text = urllib.parse.urlencode({k: v for k, v in (query or {}).items() if v})
        url = self._base + urllib.parse.quote(path, safe="/:*~@!$&'()+,;=") + (f"?{text}" if text else "")
        request = urllib.request.Request(url, headers=self._headers)  # noqa: S310
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                return Answer(answer.status, _object(answer.read()))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _object(error.read()))
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(f"{self._base} does not answer: {reason}") from error


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _token(user: Entry) -> dict[str, str]:
    for kind in ("exec", "auth-provider"):
        if user.get(kind):
            raise KubeconfigError(f"users with {kind} are not supported here: use a certificate or a token")
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = _file(user["tokenFile"]).decode().strip()
    return {"Authorization": f"Bearer {token}"} if token else {}


def _context(credentials: Credentials) -> ssl.SSLContext:
    cluster, user = credentials
    authority = _data(cluster, "certificate-authority")
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = _data(user, "client-certificate"), _data(user, "client-key")
        if certificate and key:
            # OpenSSL takes them from files only: these live for the moment of reading.
            with tempfile.TemporaryDirectory() as directory:
                pair = Path(directory, "crt"), Path(directory, "key")
                for path, content in zip(pair, (certificate, key), strict=True):
                    path.touch(0o600)
                    path.write_bytes(content)
                context.load_cert_chain(*pair)
    except ssl.SSLError as error:
        raise KubeconfigError(f"the current context's certificates cannot be used: {error}") from error
    return context


def _data(entry: Entry, key: str) -> bytes:
    """From `<key>-data`, else the file `<key>`; b"" if neither is there."""
    if entry.get(f"{key}-data"):
        try:
            return base64.b64decode(entry[f"{key}-data"])
        except (binascii.Error, ValueError) as error:
            raise KubeconfigError(f"{key}-data is not base64") from error
    return _file(entry[key]) if entry.get(key) else b""


def _file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror}") from error

"""Requests over HTTPS with a kubeconfig's credentials, with nothing but the standard library.

For the plugins, which have to start quickly; programs that stay use the syncer's client.
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

from reconciler.plugin.errors import MissingWorkspace, PluginError
from reconciler.plugin.kubeconfigs import Credentials, Entry, KubeconfigError

Object = dict[str, Any]

_COMMIT = "Treeplane-Commit"
SECONDS = 70.0
"""Longer than a server takes for a request, so that it is the one to say that time is over."""


class Unreachable(PluginError):
    """No answer; the message names the server and why."""


class Answer(NamedTuple):
    """`object` is {} where the body is no JSON object. `commit`: the one that it is about, where it says so."""

    status: int
    object: Object
    commit: str = ""

    def refusal(self) -> PluginError:
        """Of a request, in the server's words."""
        if self.status == 401:
            return PluginError("the server does not know who you are: check the user of the current context")
        return PluginError(self.object.get("message") or f"the server answered {self.status}")

    def denial(self, path: str) -> PluginError:
        """Of the workspace at `path`, which was asked for what everyone in it may read."""
        match self.status:
            case 404:
                return MissingWorkspace(f'workspace "{path}" not found')
            case 403:
                return PluginError(f'access to workspace "{path}" denied')
            case _:
                return self.refusal()


class Client:
    """Of one server."""

    def __init__(self, base: str, credentials: Credentials, seconds: float = SECONDS) -> None:
        """`seconds`: how long an answer may take. Raises KubeconfigError for credentials that cannot be read or are of
        a kind not supported."""
        self._base = base
        self._seconds = seconds
        self._headers = {"Accept": "application/json", "User-Agent": "kubectl-ws", **_token(credentials.user)}
        handler = urllib.request.HTTPSHandler(context=_context(credentials))
        self._opener = urllib.request.build_opener(handler)

    def get(self, path: str, query: dict[str, str] | None = None) -> Answer:
        """Raises Unreachable. `query`: empty values are left out."""
        text = urllib.parse.urlencode({k: v for k, v in (query or {}).items() if v})
        return self._ask("GET", f"{_quoted(path)}?{text}" if text else _quoted(path))

    def send(self, method: str, path: str, body: Object) -> Answer:
        """POST or PUT. Raises Unreachable."""
        return self._ask(method, _quoted(path), json.dumps(body).encode())

    def _ask(self, method: str, target: str, body: bytes | None = None) -> Answer:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        request = urllib.request.Request(self._base + target, body, headers, method=method)  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                return Answer(answer.status, _object(answer.read()), answer.headers.get(_COMMIT, ""))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _object(error.read()))
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(f"{self._base} does not answer: {reason}") from error


def _quoted(path: str) -> str:
    return urllib.parse.quote(path, safe="/:*~@!$&'()+,;=")


def _object(body: bytes) -> Object:
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
        # As kubectl: what is trusted may be an intermediate certificate, or the server's own.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
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

"""Who a request comes from: a client certificate, else a bearer token. Anonymous requests are refused.

Called by the endpoints with the ASGI scope. The TLS protocol (apiserver/tls.py) has verified the certificate and left
its names in `scope["extensions"]["tls"]`; static tokens are read by tokens.py. Impersonation is impersonation.py's.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apiserver.auth.tokens import TokenFile
from apiserver.auth.user import AUTHENTICATED, User
from apiserver.model.errors import unauthorized

Headers = Iterable[tuple[bytes, bytes]]
"""As in an ASGI scope: names in lower case."""

_SUBPROTOCOL = "base64url.bearer.authorization.k8s.io."


class Authenticator:
    """Turns a request into a User. `token_file` None: client certificates only."""

    def __init__(self, token_file: Path | None = None) -> None:
        """Raises OSError or ValueError where the token file cannot be read: better at the start than at a request."""
        self._tokens = TokenFile(token_file) if token_file else None

    def authenticate(self, scope: dict[str, Any], *, basic: bool = False) -> User:
        """The user, always in group system:authenticated. Raises StatusError 401.

        `scope["extensions"]["tls"]` is {"user": str, "groups": [str]} or None. `basic`: take the password of a Basic
        header as the token, for git, which knows no other way to send one.
        """
        peer = (scope.get("extensions") or {}).get("tls")
        if peer and peer["user"]:
            return authenticated(User(peer["user"], tuple(peer["groups"])))
        token = _bearer(scope["headers"]) or _subprotocol_token(scope) or (_password(scope["headers"]) if basic else "")
        user = self._tokens.user(token) if self._tokens and token else None
        if user is None:
            raise unauthorized()
        return authenticated(user)


def authenticated(user: User) -> User:
    """`user` with group system:authenticated."""
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)


def _credentials(headers: Headers, scheme: bytes) -> bytes:
    for name, value in headers:
        if name == b"authorization":
            found, _, rest = value.strip().partition(b" ")
            return rest.strip() if found.lower() == scheme else b""
    return b""


def _bearer(headers: Headers) -> str:
    return _credentials(headers, b"bearer").decode(errors="replace")


def _password(headers: Headers) -> str:
    try:
        pair = base64.b64decode(_credentials(headers, b"basic"), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return pair.partition(":")[2]


def _subprotocol_token(scope: dict[str, Any]) -> str:
    """Browsers cannot set headers on a WebSocket; they send the token as a subprotocol."""
    for offered in scope.get("subprotocols") or ():
        if offered.startswith(_SUBPROTOCOL):
            text = offered.removeprefix(_SUBPROTOCOL)
            try:
                return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
            except (binascii.Error, ValueError):
                return ""
    return ""

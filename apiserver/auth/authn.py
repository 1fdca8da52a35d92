"""Who a request comes from: a client certificate, else a bearer token. Others are refused, or anonymous if that is on.

Called by the endpoints with the ASGI scope. The TLS protocol (apiserver/tls.py) has judged the certificate and left
that in `scope["extensions"]["tls"]`; static tokens are read by tokens.py, ServiceAccounts' verified by
accounts.py. Impersonation is impersonation.py's.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from apiserver.auth.accounts import Accounts
from apiserver.auth.peer import Peer
from apiserver.auth.tokens import TokenFile
from apiserver.auth.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from apiserver.auth.workspaces import passes_for_workspace
from apiserver.model.errors import unauthorized

Headers = Iterable[tuple[bytes, bytes]]
"""As in an ASGI scope: names in lower case."""

_SUBPROTOCOL = "base64url.bearer.authorization.k8s.io."


_ANONYMOUS = User(ANONYMOUS, (UNAUTHENTICATED,))


class Authenticator:
    """Turns a request into a User."""

    def __init__(
        self, token_file: Path | None = None, accounts: Accounts | None = None, *, anonymous: bool = False
    ) -> None:
        """What is None is not asked. `anonymous`: requests without credentials are let in, as `system:anonymous`.

        Raises OSError or ValueError where the token file cannot be read: better at the start than at a request.
        """
        self._tokens = TokenFile(token_file) if token_file else None
        self._accounts = accounts
        self._anonymous = anonymous

    def authenticate(self, scope: dict[str, Any], *, basic: bool = False) -> User:
        """The user, in group system:authenticated unless anonymous. Raises StatusError 401, also for a certificate that
        names a workspace.

        `scope["extensions"]["tls"]` is a Peer or None. As in kube-apiserver, a certificate that does not count leaves a
        token its chance, but makes nobody anonymous. `basic`: take the password of a Basic header as the token, for
        git, which knows no other way to send one.
        """
        peer: Peer | None = (scope.get("extensions") or {}).get("tls")
        good = peer is None or peer.counts(time.time())
        if peer is not None and good and peer.user:
            if passes_for_workspace(peer.user, peer.groups):
                raise unauthorized()
            return authenticated(User(peer.user, peer.groups))
        token = _bearer(scope["headers"]) or _subprotocol_token(scope) or (_password(scope["headers"]) if basic else "")
        if token:
            found = self.review(token)
            if found is not None:
                return found[0]
        elif self._anonymous and good and not basic and not _has_credentials(scope["headers"]):
            return _ANONYMOUS
        raise unauthorized()

    def review(self, token: str, audiences: Sequence[str] = ()) -> tuple[User, list[str]] | None:
        """Whose bearer token a text is, and for which of `audiences` it is good (none asked for: the server's own);
        None if it is nobody's or good for none of them."""
        user = self._tokens.user(token) if self._tokens else None
        if user is not None:
            # A token that names no audience is meant for the server.
            own = self._accounts.issuer.audiences if self._accounts else ()
            good = [a for a in audiences or own if a in own]
            return (authenticated(user), good) if good or not audiences else None
        return self._accounts.authenticate(token, audiences) if self._accounts else None


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


def _has_credentials(headers: Headers) -> bool:
    return any(name == b"authorization" for name, _ in headers)


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

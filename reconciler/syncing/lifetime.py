"""From when to when the credentials of a sync target count, and what its condition says of that. Pure.

A token's time is read from the token, whose signature is not ours to check: it says when we ask for the next one and
what a condition tells; whether the target lets us in is the target's to say. Times are seconds since 1970.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.auth.pki_validity import validity
from apiserver.model import clock
from apiserver.model.conditions import Condition, condition
from reconciler.controllers.targets import CREDENTIALS
from reconciler.syncing.kubeconfig import Access

LARGEST = 16 * 1024
"""Bytes of a token. Those of clusters have some 1,000."""
_WEEK = 7 * 86400.0
_PART = 0.8
"""Of its life, after which a token is renewed."""
_SPREAD = 0.05
_LATEST = 253_402_300_799.0
"""The last second of the year 9999."""
_SUBJECT = re.compile(r"system:serviceaccount:([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?):([a-z0-9][-a-z0-9.]{0,252})")
_END = re.compile(r" end(?:s|ed) at ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z)")


class TargetAccount(NamedTuple):
    """A ServiceAccount of the target, as whom we are there."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Lifetime:
    """`what`: how people call the credentials. `account`: whose token it is, None where it is no ServiceAccount's."""

    what: str
    begins: float
    ends: float
    account: TargetAccount | None = None

    @property
    def life(self) -> float:
        return self.ends - self.begins

    @property
    def warns(self) -> float:
        """From when on it is told that they end: a week before, or a third of a shorter life."""
        return self.ends - min(_WEEK, self.life / 3)

    def renews(self, chance: float) -> float:
        """When the next token is asked for. `chance`: from 0 to 1, for each target another, so that not all ask at the
        same time."""
        return self.begins + self.life * (_PART - _SPREAD * chance)


def lifetime(access: Access) -> Lifetime | None:
    """None where nothing is known of an end. Of token and certificate either is enough, so the later end counts."""
    token = of_token(access.token) if access.token else None
    if access.token and token is None:
        return None
    if not access.certificate:
        return token
    certificate = _of_certificate(access.certificate)
    if certificate is None:
        return None
    return token if token is not None and token.ends >= certificate.ends else certificate


def of_token(token: str) -> Lifetime | None:
    """Of a JSON web token with `iat` and `exp`; None for any other."""
    claims = _claims(token)
    begins, ends = _moment(claims.get("iat")), _moment(claims.get("exp"))
    if begins is None or ends is None or begins >= ends:
        return None
    said = claims.get("sub")
    found = _SUBJECT.fullmatch(said) if isinstance(said, str) else None
    return Lifetime("token", begins, ends, TargetAccount(found[1], found[3]) if found else None)


def _of_certificate(pem: bytes) -> Lifetime | None:
    try:
        return Lifetime("client certificate", *validity(pem))
    except ValueError:
        return None


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(token) > LARGEST or len(parts) != 3:
        return {}
    try:
        found = orjson.loads(base64.b64decode(parts[1] + "=" * (-len(parts[1]) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _moment(said: Any) -> float | None:
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= _LATEST:
        return None
    return float(said)


# -- what is told


def told(found: Lifetime, now: float, renews: float, reason: str, trouble: str) -> Condition:
    """`CredentialsValid` of a SyncTarget. `renews`: when they are to be renewed; `trouble`: why they are not, with
    `reason`, "" for nothing."""
    if now >= found.ends:
        why = f"; they were not renewed: {trouble}" if trouble else ""
        return condition(CREDENTIALS, False, "CredentialsEnded", f"the {found.what} ended at {_at(found.ends)}{why}")
    if trouble and now >= found.warns:
        return condition(CREDENTIALS, False, reason, f"the {found.what} ends at {_at(found.ends)}: {trouble}")
    rest = trouble or f"it is renewed after {_at(renews)}"
    return condition(CREDENTIALS, True, CREDENTIALS, f"the {found.what} ends at {_at(found.ends)}; {rest}")


def end_told(message: str) -> str:
    """When the credentials end, as a condition's message says; "" where it does not."""
    found = _END.search(message)
    return found[1] if found is not None else ""


def _at(moment: float) -> str:
    return clock.rfc3339(moment)

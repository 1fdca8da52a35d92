"""Why a source could not be looked at, in stable words that hold nothing of what the remote says.

Raised by the modules of this room; `follower` makes a `Found` of it. A text that differed from one look to the next
would be news each time.
"""

from __future__ import annotations

import http.client
import socket
import ssl

from apiserver.registry.outbound import NotAllowed
from reconciler.repository.errors import RepositoryError

AGAIN = "it is looked at again and again; what is served stays"


class SourceFault(RepositoryError):
    """`reason`: one of `followed.REASONS`."""

    def __init__(self, reason: str, what: str, hint: str = AGAIN) -> None:
        super().__init__(what, hint)
        self.reason = reason


class NotGiven(SourceFault):
    """The remote says that it does not give what it was asked for: asking again is of no use."""


class VisitGivenUp(Exception):
    """Somebody else's turn, or the end of the process: nothing is known of the source that was not before."""


_NAMELESS = (
    "name a Secret with credentials that may read the repository; of one that is not there many hosts say the same, so "
    "check the URL as well"
)
TRANSPORT = (OSError, ValueError, http.client.HTTPException, NotAllowed)
"""What a connection raises."""


def of_transport(error: Exception, remedy: str) -> SourceFault:
    """`remedy`: what an administrator may do where the address is not allowed."""
    if isinstance(error, NotAllowed):
        return SourceFault("AddressRefused", f"the repository's host {error}", remedy or AGAIN)
    if isinstance(error, ssl.SSLCertVerificationError):
        what = f"the certificate of the repository's host is not trusted: {error.verify_message}"
        return SourceFault("CertificateRefused", what, "put the CA's certificate into the Secret as `caFile`")
    if isinstance(error, socket.gaierror):
        return SourceFault("Unreachable", "the repository's host has no address", f"check the URL; {AGAIN}")
    if isinstance(error, ConnectionRefusedError):
        return SourceFault("Unreachable", "the repository's host refuses connections", f"check the URL; {AGAIN}")
    if isinstance(error, TimeoutError):
        return SourceFault("TooSlow", "the repository's host does not answer in time")
    if isinstance(error, ssl.SSLError):
        return SourceFault("Unreachable", "the repository's host does not speak TLS as it is spoken here")
    return SourceFault("Unreachable", f"the connection to the repository's host broke ({type(error).__name__})")


def of_status(status: int, named: bool, moved: str = "") -> SourceFault:
    """Of an answer that is not 200. `named`: whether credentials were sent. `moved`: see redirects."""
    said = f"the repository's host answers with {status}"
    if status in (401, 407):
        hint = "it does not take the credentials of the Secret" if named else _NAMELESS
        return SourceFault("Unauthorized", said, hint)
    if status == 403:
        return SourceFault("Unauthorized", said, "the credentials may not read the repository, or they are missing")
    if status in (404, 410):
        return SourceFault("NotFound", said, "check the URL, and that the credentials may read the repository")
    if status == 413:
        return SourceFault("TooLarge", f"{said}: it takes no request so large")
    if 300 <= status < 400:
        where = f"the repository is at {moved} by now, so name that" if moved else "name the URL that it leads to"
        return SourceFault("NotARepository", said, f"redirects are not followed; {where}")
    if status == 429 or status >= 500:
        return SourceFault("Failing", said)
    return SourceFault(
        "NotARepository", said, "check the URL: it has to be that of a repository that is cloned by https"
    )


def damaged(how: str) -> SourceFault:
    return SourceFault("Unusable", f"what the repository's host sends is not what git sends: {how}")

"""Whose client certificate a connection showed. Made by pki_clients.py, once a connection; asked by authn.py at each
request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """`user`: the certificate's common name, `groups`: its organizations; both only of one that is ours. `begins`,
    `ends`: when its chain is good, in seconds since 1970. `refused`: why it does not count, "" if it does; there is no
    name then."""

    user: str = ""
    groups: tuple[str, ...] = ()
    begins: float = 0.0
    ends: float = 0.0
    refused: str = ""

    def counts(self, now: float) -> bool:
        """Whether it says who asks, at this moment: a connection may outlive the certificate that it began with."""
        return not self.refused and self.begins <= now < self.ends

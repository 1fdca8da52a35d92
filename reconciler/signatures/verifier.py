"""Who signed a commit, or why nobody vouches for it.

Called by what takes commits in, from several threads. A good verdict holds for as long as the process lives: what was
good at first sight is not taken back by a key that expires later. A bad one is looked at anew after a while, since a
key may become valid, and a program that was not there be installed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from reconciler.repository.objects import Repository
from reconciler.signatures import openpgp, sshkeys, sshsig
from reconciler.signatures.own import KnownCommitKey
from reconciler.signatures.signedcommit import part
from reconciler.signatures.signers import Signers
from reconciler.signatures.verdict import NotVerified, Signer, Unverified

__all__ = ["NotVerified", "Signer", "Unverified", "Verifier"]

_T = TypeVar("_T")
_KEPT = 10_000
_AGAIN = 5.0
"""Seconds for which a bad verdict is not looked at anew."""
_X509 = "-----BEGIN SIGNED MESSAGE-----"


class Verifier:
    """Threads may share it."""

    def __init__(
        self, own: KnownCommitKey | None, where: Path | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`own`: this server's key, or its public half. `where`: the directory for what ssh-keygen reads; None: the
        system's for temporary files. `now`: seconds."""
        self._own, self._where, self._now = own, where, now
        self._lock = threading.Lock()
        self._good: dict[tuple[str, str], Signer] = {}
        self._bad: dict[tuple[str, str], tuple[float, NotVerified]] = {}

    def signer(self, repo: Repository, commit: str, signers: Signers) -> Signer:
        """Of the commit with this full id. Raises NotVerified, and RepositoryUnreadable where git lacks the commit."""
        asked = commit, signers.digest
        with self._lock:
            good, (until, bad) = self._good.get(asked), self._bad.get(asked, (0.0, None))
        if good is not None:
            return good
        if bad is not None and self._now() < until:
            raise NotVerified(bad.why, bad.how)
        try:
            good = self._judged(repo.raw_commit(commit), signers)
        except NotVerified as error:
            with self._lock:
                _put(self._bad, asked, (self._now() + _AGAIN, NotVerified(error.why, error.how)))
            raise
        with self._lock:
            _put(self._good, asked, good)
        return good

    def _judged(self, raw: bytes, signers: Signers) -> Signer:
        payload, armor = part(raw)
        if armor.startswith(sshsig.BEGIN):
            if self._own is not None and self._own.made(payload, armor):
                if self._own.is_excerpt(payload):
                    raise NotVerified("it is a workspace's status, which this server signed for a tenant's repository")
                return Signer("", self._own.key, ours=True)
            try:
                signature = sshsig.parse(armor)
            except ValueError as error:
                raise NotVerified(f"its signature is damaged: {error}") from None
            return sshkeys.signer(payload, signature, signers.allowed, self._where)
        if armor.startswith(openpgp.BEGIN):
            return openpgp.signer(payload, armor, openpgp.read(signers.certificates))
        if armor.startswith(_X509):
            why = "it is signed by X.509, which is not supported: sign with SSH or OpenPGP"
        else:
            why = "its signature is of a kind that is not supported: sign with SSH or OpenPGP"
        raise NotVerified(why, Unverified.UNKNOWN)


def _put(memo: dict[tuple[str, str], _T], key: tuple[str, str], value: _T) -> None:
    memo[key] = value
    while len(memo) > _KEPT:
        del memo[next(iter(memo))]

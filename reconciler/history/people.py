"""Who is behind a commit: its author, whose key signed it, and who is known to have brought it to the branch.

Called by log, blame and trace, for the commits that they tell of. The three are told apart, since they need not be one:
the author is anybody's text. Signers are those whom the commit's first parent names (docs/signatures.md), else the
server's own list, where that is given. Pushers the status branch says.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from apiserver.model.commits import own
from reconciler.history.fleet import FleetHistory
from reconciler.history.kinds import DeclaredId
from reconciler.history.result import ObjectWriter, SignatureState, SignedBy, ToldCommit
from reconciler.loading.vouching import Vouching
from reconciler.plan.pushedby import NOBODY, SERVER, SEVERAL, PushedBy
from reconciler.repository.pushrecords import PushRecords
from reconciler.repository.writtenby import WrittenBy, written_by
from reconciler.signatures.own import NAME, KnownCommitKey
from reconciler.signatures.verifier import NotVerified, Verifier
from reconciler.statusbranch.pushtrailers import pushed_by

_SIGNERS = "signers"
_NOBODY = Path(os.devnull) / "nobody"
"""A directory that nobody can make."""


class ServerKeys(NamedTuple):
    """What is known of a server's `keys/`: `own`, the public half of what it signs with, and `signers`, its own list of
    who may sign. None where it is not known."""

    own: KnownCommitKey | None = None
    signers: Path | None = None

    @staticmethod
    def of(directory: Path) -> ServerKeys:
        """Raises KeysError for a key that cannot be read."""
        public, signers = directory / f"{NAME}.pub", directory / _SIGNERS
        known = KnownCommitKey.read(public) if public.is_file() else None
        return ServerKeys(known, signers if signers.is_dir() else None)


class People:
    """Of the commits of one history."""

    def __init__(self, history: FleetHistory, keys: ServerKeys) -> None:
        self._history = history
        self._vouching = Vouching(PushRecords(None), Verifier(keys.own), keys.signers or _NOBODY)
        self._pushers: dict[str, PushedBy] = {}

    def told(self, commits: Iterable[str]) -> list[ToldCommit]:
        """In their order, the newest first: an earlier one is asked about after a later one."""
        wanted = list(commits)
        recorded = self._history.recorded
        if recorded is not None:
            self._pushers |= pushed_by(self._history.repo, recorded.commit.id, wanted)
        return [self._told(commit) for commit in wanted]

    def writers(self, commit: ToldCommit) -> ObjectWriters:
        known = commit.pusher.how in (SERVER, SEVERAL) or commit.signer.state is SignatureState.SERVER
        return ObjectWriters(written_by(self._history.repo.commit(commit.id).message), known)

    def _told(self, commit: str) -> ToldCommit:
        info = self._history.repo.commit(commit)
        trusted = self._history.repo.commit(info.parents[0]).tree if info.parents else ""
        subject = info.message.partition("\n")[0]
        pusher = self._pushers.get(commit, NOBODY)
        return ToldCommit(commit, info.time, info.author, self._signed(commit, trusted), pusher, subject)

    def _signed(self, commit: str, trusted: str) -> SignedBy:
        try:
            signer = self._vouching.signer(self._history.repo, own(commit), trusted)
        except NotVerified as bad:
            return SignedBy(SignatureState(bad.how.value), why=bad.why)
        state = SignatureState.SERVER if signer.ours else SignatureState.GOOD
        return SignedBy(state, signer.user, signer.key)


class ObjectWriters:
    """Of one commit: what its trailers say of who wrote what. `known`: the commit is the server's own."""

    def __init__(self, said: Iterable[WrittenBy], known: bool) -> None:
        self._known = known
        self._by: dict[tuple[str, str, str], list[WrittenBy]] = {}
        for each in said:
            self._by.setdefault((each.workspace, each.namespace, each.name), []).append(each)
        self._met: set[WrittenBy] = set()

    def of(self, workspace: str, found: DeclaredId) -> ObjectWriter | None:
        """None where nothing is said of it."""
        name = found.name.replace(" ", "%20")
        spaces = (found.namespace,) if found.namespace else ("default", "")
        for namespace in spaces:
            for each in self._by.get((workspace, namespace, name), ()):
                if each.resource in found.resources:
                    self._met.add(each)
                    return ObjectWriter(each.user, self._known)
        return None

    def unmet(self, workspaces: Mapping[str, object] | Iterable[str]) -> list[WrittenBy]:
        """What is said of objects in some workspaces that nobody asked about: the commit does not change them."""
        here = {*workspaces}
        every = (each for said in self._by.values() for each in said)
        return [each for each in every if each.workspace in here and each not in self._met]

"""Who stands for a commit: whoever pushed it, as far as that is known.

Called by owners, for commits that are to be taken. The author line is anybody's text and decides nothing. A user of the
hosted repository was authenticated when he pushed (repository/pushrecords); elsewhere it is who signed the commit
(signatures), under the user name that the signers' file gives him; a commit that the server made of writes through the
API, of one user or of several, is signed by the server's own key, and each write was allowed when it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from apiserver.auth.pki import SHARD_ADMIN
from apiserver.auth.user import AUTHENTICATED, User
from apiserver.model.commits import CommitRef
from reconciler.plan.pushedby import NOBODY, OPERATOR, PUSH, SERVER, SEVERAL, SIGNATURE, PushedBy
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord, PushRecords, covering
from reconciler.repository.writtenby import written_by
from reconciler.signatures.signers import Signers, directory_in, of_directory, of_tree
from reconciler.signatures.verifier import NotVerified, Signer, Verifier

KEYS = "keys/signers"
"""What a server's own list of signers is called, in messages."""


@dataclass(frozen=True, slots=True)
class Voucher:
    """`user`: whom RBAC is asked about, None where there is nobody to ask about. `why` nobody is known."""

    said: PushedBy = NOBODY
    user: User | None = None
    why: str = ""

    @property
    def is_free(self) -> bool:
        """Whether he may touch all there is: who runs the server, and the server itself, which asked before writing."""
        return self.said.how in (SERVER, SEVERAL, OPERATOR) or (self.user is not None and self.user.is_master)

    def __str__(self) -> str:
        """For people."""
        if self.said.how == PUSH:
            return f"pushed by {self.said.user}"
        if self.said.how == SIGNATURE:
            return f"signed by {self.said.user}"
        return f"of whom it is not known who pushed it, since {self.why}" if self.why else "of the server's"


OPERATORS = Voucher(PushedBy(SHARD_ADMIN, OPERATOR))
"""Of who runs the server."""


@dataclass(frozen=True, slots=True)
class Vouching:
    """`records`: of the repository that the server hosts; `verifier`: see signatures; `signers`: the directory of the
    server's own list, where a commit has none. `local`: whoever commits in the repository is who runs the server, since
    it is a work tree on this machine. `pushed`: what is known besides of pushes, by the commit that they end with."""

    records: PushRecords
    verifier: Verifier
    signers: Path
    local: bool = False
    pushed: Mapping[str, PushRecord] = field(default_factory=dict)

    def also(self, commit: str, record: PushRecord) -> Vouching:
        """With what is known of one more push."""
        return replace(self, pushed={**self.pushed, commit: record})

    def pushes(self, before: CommitRef, chain: Sequence[CommitRef]) -> dict[CommitRef, PushRecord]:
        """The push that brought each of some commits: the first follows `before`, each other the one before it."""
        found = covering(_Known(self.records, self.pushed), [commit.id for commit in chain], before.id)
        return {commit: record for commit in chain if (record := found.get(commit.id)) is not None}

    @property
    def keeps_a_list(self) -> bool:
        """Whether the server has a list of its own, be there anybody in it or not."""
        return self.signers.is_dir() and any(self.signers.iterdir())

    def who_may_sign(self, repo: Repository, trusted: str) -> Signers:
        """Those whom the tree of a trusted commit names ("": there is none); where it has no signers/ at all, those of
        the server's own list. One that is there and names nobody names nobody."""
        if trusted and repo.entry_at(trusted, directory_in(repo, trusted)) is not None:
            return of_tree(repo, trusted)
        return of_directory(self.signers)

    def signer(self, repo: Repository, commit: CommitRef, trusted: str) -> Signer:
        """Raises NotVerified."""
        return self.verifier.signer(repo, commit.id, self.who_may_sign(repo, trusted))

    def is_ours(self, repo: Repository, commit: CommitRef) -> bool:
        """Whether this server's key signed a commit."""
        try:
            return self.verifier.signer(repo, commit.id, Signers()).ours
        except NotVerified:
            return False

    def voucher(self, repo: Repository, commit: CommitRef, trusted: str, push: PushRecord | None) -> Voucher:
        """`push`: that brought the commit, None where nobody knows of one."""
        user = _user(push) if push is not None else None
        if push is not None and user is not None:
            return Voucher(PushedBy(user.name, OPERATOR if push.operator else PUSH), user)
        if self.local:
            return OPERATORS
        try:
            signer = self.signer(repo, commit, trusted)
        except NotVerified as bad:
            return Voucher(why=bad.why)
        if signer.ours:
            return Voucher(PushedBy.server(_writers(repo, commit), signer.key))
        return Voucher(PushedBy(signer.user, SIGNATURE, signer.key), User(signer.user, (AUTHENTICATED,)))


def _writers(repo: Repository, commit: CommitRef) -> list[str]:
    """Of a commit that is the server's own. It has an author, or says of each write whose it is."""
    info = repo.commit(commit.id)
    return [each.user for each in written_by(info.message)] or [info.author.rpartition(" <")[0]]


def _user(push: PushRecord) -> User | None:
    """None of a record that says nothing of the kind."""
    try:
        return User.from_json(push.pusher)
    except ValueError:
        return None


class _Known(PushRecords):
    """Push records, and some that are not written down yet."""

    def __init__(self, records: PushRecords, more: Mapping[str, PushRecord]) -> None:
        self._records, self._more = records, more

    def of(self, commit: str) -> PushRecord | None:
        return self._more.get(commit) or self._records.of(commit)

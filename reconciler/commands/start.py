"""What a start goes on from: the commit of the status branch that counts, as holder or as observer, or why there is no
start.

Called by the reconciler's process (reconcile) before the store is served, and again when a holder finds that it is none
any more. What is refused here names the command that goes on.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from reconciler.commands.again import again
from reconciler.commands.installation import Installation
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.teller import Teller
from reconciler.commands.traces import trace
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FILE, fleet_id, read_fleet
from reconciler.layout.tree import TOP
from reconciler.loading.realtargets import real_targets
from reconciler.repository.errors import PushRejected, StatusAway
from reconciler.repository.folder import joined
from reconciler.repository.messages import with_trailers
from reconciler.repository.mirror import Heads, Mirror
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import NotVerified, Verifier
from reconciler.statusbranch import format
from reconciler.statusbranch.claim import TAKES_OVER, Claim, Finding, claim_of, find
from reconciler.statusbranch.lostrecord import LostRecord
from reconciler.statusbranch.naming import is_moved, served_by
from reconciler.statusbranch.recorded import RecordedByNewer, RecordedFleet

log = logging.getLogger(__name__)

_TRIES = 5


class StartRefused(Exception):
    """There is no start; the text says why, and the whole command that goes on."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """`recorded`: the status branch's commit to go on from, None where nothing was ever recorded. `epoch`: that of the
    commits that follow. `holder`: who holds the fleet, where that is another server: then this one observes. `taken`:
    the commit that another one wrote last, where the fleet was taken over from it just now."""

    heads: Heads
    recorded: RecordedFleet | None
    epoch: int = 1
    holder: str = ""
    taken: str = ""


def refuse_incomplete(mirror: Mirror) -> None:
    """Raises Refused for a source that is a shallow or partial clone."""
    command = mirror.incomplete()
    if command:
        raise StartRefused(
            f"{mirror.source_name} is a shallow or partial clone: it lacks history. Complete it:\n  {command}"
        )


class Start:
    """`first`: whether this is the start of a server, where it may take over by itself, and not of one that goes on."""

    def __init__(
        self, settings: ReconcileSettings, mirror: Mirror, installation: Installation, teller: Teller, *, first: bool
    ) -> None:
        self._settings = settings
        self._teller = teller
        self._mirror = mirror
        self._repo = mirror.repository
        self._installation = installation
        self._first = first
        self._key = CommitKey.open(settings.keys_dir)
        self._verifier = Verifier(self._key)
        self.lost = LostRecord(mirror)
        """Of a server that this one came from by a backup."""

    def begin(self, heads: Heads) -> Beginning:
        """Settles what counts. Raises Refused, and RepositoryError where the source has to be asked and does not
        answer."""
        for _ in range(_TRIES):
            found = self._begin(heads)
            if found is not None:
                if found.recorded is not None:
                    self._check_folder(heads, found.recorded)
                if found.recorded is not None and not found.holder:
                    self._check_branch(heads, found.recorded)
                return found
            heads = self._mirror.refresh()
        raise PushRejected("the status branch is written to without a pause", "it is tried again")

    def _begin(self, heads: Heads) -> Beginning | None:
        """None where it has to be looked at again."""
        ours, published = self._mirror.status(), heads.status
        if self._mirror.is_apart and heads.desired is not None and published not in (None, ours):
            self._check_fleet(heads.desired, ours, str(published))
        published = self.lost.newest(published)
        if published != heads.status:
            self._check_lost(heads, str(published))
            if self.lost.push(heads.status):
                heads = Heads(heads.desired, published)
        theirs = published if published is not None else ours
        finding = find(self._repo, ours, published, self._installation.is_own, self._is_signed)
        # Of what counts alone: what anybody may have pushed there is no reason not to start.
        self._refuse_newer(ours if finding in (Finding.OURS, Finding.NOBODYS) else theirs)
        match finding:
            case Finding.OURS | Finding.NOBODYS:
                return Beginning(heads, self._recorded(ours), self._epoch(ours))
            case Finding.AHEAD:
                assert theirs is not None
                self._leave(ours, theirs)
                return Beginning(heads, self._recorded(theirs), self._epoch(theirs))
            case Finding.ANOTHERS:
                assert theirs is not None
                claim = claim_of(self._repo, theirs)
                if self._may_take_over(claim, theirs):
                    return self._taken_over(heads, claim, theirs)
                # What it recorded last, also where somebody took its branch away.
                self._leave(ours, theirs)
                return Beginning(heads, self._recorded(theirs), claim.epoch, claim.writer)

    def _refuse_newer(self, commit: str | None) -> None:
        """Before anything is done with what stands there, and above all before anything is written."""
        try:
            if commit is not None:
                RecordedFleet(self._repo, commit).facts()
        except RecordedByNewer as error:
            raise StartRefused(str(error)) from error

    def _is_signed(self, commit: str) -> bool:
        try:
            return self._verifier.signer(self._repo, commit, Signers()).ours
        except NotVerified:
            return False

    def begins_anew(self, beginning: Beginning) -> bool:
        """Of a fleet of which nothing is stored: whether it begins with new identities, as it was told to. Raises
        Refused where nothing is recorded either and it was not told so, though it was served before, and
        RepositoryUnreadable where a URL does not answer."""
        head = beginning.heads.desired
        if beginning.recorded is not None or head is None:
            return False
        on_purpose = self._settings.new_identities == head
        try:
            found = trace(self._mirror, self._installation, self._fleet(head), head)
        except StatusAway as error:
            if not on_purpose:
                raise
            log.warning("begins with new identities, although it may have been recorded: %s", error)
            return True
        if found is None:
            return False
        if on_purpose:
            log.warning("begins with new identities, although %s", found.what)
            return True
        again_with = again(self._settings.command, "--new-identities", head)
        raise StartRefused(
            f"this fleet was served before, and its status branch, {found.branch}, is not here: "
            f"{found.what}. Without it everything would be made a second time, with new UIDs, and run a second time on "
            f"real clusters. Fetch it, and start again:\n  {found.command}\n"
            f"Or begin with new identities, on purpose and for this commit alone:\n  {again_with}"
        )

    def _fleet(self, head: str) -> str:
        """The fleet's id, as a first load of a commit finds it."""
        try:
            uid = read_fleet(self._repo, self._repo.commit(head).tree).uid
        except BadFile:
            uid = ""
        return uid or fleet_id(self._repo, head)

    # -- another's

    def _may_take_over(self, claim: Claim, theirs: str) -> bool:
        if self._settings.take_over == claim.writer:
            return True
        if not self._first or self._mirror.is_remote:
            return False
        recorded = RecordedFleet(self._repo, theirs)
        facts = recorded.facts()
        if facts.targets is not None:
            return not facts.targets
        commits = {recorded.source, *recorded.served(), *facts.arriving}
        return not real_targets(self._mirror.repositories, commits)

    def _taken_over(self, heads: Heads, claim: Claim, theirs: str) -> Beginning | None:
        """The branch says that it is ours before anything else is done. None where somebody was faster."""
        recorded = RecordedFleet(self._repo, theirs)
        self._check_folder(heads, recorded)
        self._check_branch(heads, recorded)
        self._installation.claim(recorded.facts().id)
        epoch = claim.epoch + 1
        trailers = {format.TRAILER: str(recorded.source), **Claim(self._installation.writer, epoch).trailers()}
        message = with_trailers(f"{TAKES_OVER}{claim.writer}", [], trailers)
        # How far another's store was recorded tells nothing of ours: what is to be said again is looked for everywhere.
        facts = replace(recorded.facts(), settled=0, folders=self._repo.folders)
        content = {format.FLEET: format.dump(facts.as_file())} if recorded.facts().arriving else {}
        tree = edit_tree(self._repo, recorded.tree, content)
        made = commit_tree(self._repo, tree, [theirs, recorded.source.id], message, sign=self._key.sign)
        try:
            self._mirror.push_status(made, heads.status)
        except PushRejected as error:
            log.warning("the fleet could not be taken over from %s: %s", claim.writer, error)
            # Where nobody recorded anything since, the source takes no push, and all that is recorded waits here.
            if theirs == heads.status or self._mirror.refresh_status() != heads.status:
                return None
        self._leave(self._mirror.status(), made)
        self._mirror.settle_lost_record()
        self._teller.note(f"took the fleet over from {claim.writer}, as that recorded it last (epoch {epoch})")
        return Beginning(Heads(heads.desired, made), self._recorded(made), epoch, taken=theirs)

    def _leave(self, ours: str | None, theirs: str) -> None:
        """Goes on from theirs. What we had and they have not stays in the mirror for a while."""
        if ours is not None and ours != theirs:
            self._mirror.keep(ours, theirs)
        self._mirror.keep_status(theirs)

    def observing(self, holder: str) -> str:
        """What is said by a server that observes."""
        return (
            f"another server, {holder}, holds this fleet: this one shows what it records, and writes nothing. When it "
            f"is gone for good, take over with:\n  {again(self._settings.command, '--take-over', holder)}"
        )

    # -- ours

    def _recorded(self, commit: str | None) -> RecordedFleet | None:
        return RecordedFleet(self._repo, commit) if commit is not None else None

    def _epoch(self, commit: str | None) -> int:
        return max(1, claim_of(self._repo, commit).epoch) if commit is not None else 1

    def _check_folder(self, heads: Heads, recorded: RecordedFleet) -> None:
        """The status branch belongs to a fleet in one folder. It goes on in another only where that was moved there:
        the old place is empty, and the new one has a fleet and contains what was served."""
        named, asked, served = recorded.facts().folders[0], self._settings.path, recorded.source
        self._repo.stood_in(recorded.facts().folders)
        if named == asked:
            return
        command = again(self._settings.command, "--path", named or ".")
        was, now = (f"folder {each}" if each else "the top of the repository" for each in (named, asked))
        text = f"this fleet stands in {was}, as its status branch says, and not in {now}. Go on with it:\n  {command}"
        head, file = heads.desired, joined(asked, FILE)
        there = head is not None and self._repo.entry_at(self._repo.commit(head).tree, file) is not None
        if head is None or not is_moved(self._repo, named, head):
            if there:
                more = (
                    f"The fleet in {now} is another, and needs a status branch of its own: spec.statusBranch of {file}"
                )
            else:
                what = f"{joined(named, FILE)} {joined(named, TOP)} {asked or '.'}/"
                more = f"If it is to move to {now}, move all of it in one commit first, like:\n  git mv {what}"
            raise StartRefused(f"{text}\n{more}")
        if not there or not self._repo.is_ancestor(served.id, head):
            why = "does not contain the commit that was served" if there else f"has no {file}"
            raise StartRefused(f"{text}\n{self._settings.branch} {why}, so it did not move there.")

    def _check_fleet(self, head: str, known: str | None, published: str) -> None:
        """A repository that the status branch has of its own may have somebody else's, or none at all: who copied
        treeplane.yaml has copied its name."""
        place = self._mirror.status_place
        hint = "Name another repository, or another branch (spec.statusBranch), in treeplane.yaml, and start again"
        if not served_by(self._repo, published):
            raise StartRefused(
                f"{place} ({published:.10}) is no status branch: its newest commit was not made by a server, or names "
                f"a commit that is not there. Nothing is written over it. {hint}, or have it point to the last commit "
                "of a server's"
            )
        theirs = RecordedFleet(self._repo, published).facts().id
        ours = RecordedFleet(self._repo, known).facts().id if known is not None else self._fleet(head)
        if theirs != ours:
            raise StartRefused(
                f"{place} is that of another fleet, {theirs}, and this one is {ours}. {hint}. If it is the same "
                f"fleet, whose history was written anew, say so in treeplane.yaml: metadata.uid: {theirs}"
            )

    def _check_lost(self, heads: Heads, lost: str) -> None:
        """Nothing vouches for a backup's being of this fleet where nothing of that is published."""
        theirs = RecordedFleet(self._repo, lost).facts().id
        if heads.status is None and heads.desired is not None and theirs != (ours := self._fleet(heads.desired)):
            raise StartRefused(f"the backup is of another fleet, {theirs}, and this one is {ours}: recover without it")

    def _check_branch(self, heads: Heads, recorded: RecordedFleet) -> None:
        """The status branch belongs to one branch. Another one takes it over only where that was renamed to it: the old
        one is gone, and the new one holds what was served."""
        named, asked, served = recorded.facts().branch, self._settings.branch, recorded.source
        if named in ("", asked):
            return
        command = again(self._settings.command, "--branch", named)
        source = self._mirror.source_name
        text = f"this fleet is served from branch {named}, as its status branch says, and not from {asked}"
        if named in self._mirror.branches():
            remote = self._mirror.is_remote
            gone = f"git push {source} --delete {named}" if remote else f"git -C {source} branch -D {named}"
            raise StartRefused(
                f"{text}. Go on from {named} with:\n  {command}\n"
                f"If {named} was renamed to {asked}, the old name has to go first:\n  {gone}"
            )
        if heads.desired is None or not self._repo.is_ancestor(served.id, heads.desired):
            raise StartRefused(
                f"{text}. {named} is gone, but {asked} does not contain the commit that was served, {served}: it is no "
                f"other name for it. Bring {named} back and go on from it with:\n"
                f"  git push {source} {served}:refs/heads/{named}\n  {command}"
            )

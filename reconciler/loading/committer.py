"""Serves writes that wait for their commit: many intents, few commits.

Called by the reconciler's process, in the thread that loads commits, also between two workspaces of a commit that is
being loaded: then on top of that one. What waits when it looks gets a turn for each author (rounds), and a turn is a
commit, or part of one with the turns of others. The order makes every crash harmless: the commit is made and judged (a
bad write is refused before anybody sees it), it becomes the branch's head, then objects and answers are written in one
transaction for each workspace. What a crash leaves in between is loaded like anybody's commit.

What cannot be a commit together is tried in parts (commitpart), and only who is alone in a commit is refused for what
it would be held for: so nobody's write costs another's.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from apiserver.model.commits import own
from apiserver.model.errors import StatusError, unavailable
from apiserver.model.keys import Internal, Key
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import AGAIN, Intent, waiting
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Conflict, Store
from reconciler.layout.errors import BadFile
from reconciler.loading.atfault import FAULT, AtFault, at_fault
from reconciler.loading.commitpart import CommitPart
from reconciler.loading.edits import Edits, NotTogether, Outdated, unreadable
from reconciler.loading.intentends import IntentEnds
from reconciler.loading.loader import Loader, Proposal
from reconciler.loading.rounds import next_round
from reconciler.loading.sealedsecrets import SECRETS
from reconciler.loading.unfetched import Unfetched
from reconciler.loading.writelosses import losses, losses_with_workspaces
from reconciler.loading.writemessage import authors, message
from reconciler.plan.pushedby import PushedBy
from reconciler.repository.desired import Desired
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryError
from reconciler.repository.objects import Repository
from reconciler.statusbranch import pushers

log = logging.getLogger(__name__)

_TOGETHER = 1000
"""Intents that are turned away at once."""
_UNREAD = StatusError(409, "Conflict", "the file was committed and is not read: see .treeplaneignore")


@dataclass(frozen=True, slots=True)
class Branch:
    """The desired branch as the committer needs it. `catch_up` loads what others pushed; `moved` hears of a commit of
    ours that is served."""

    desired: Desired
    repo: Repository
    catch_up: Callable[[], None]
    moved: Callable[[str], None]


class Committer:
    """Not thread-safe: one thread calls `serve`."""

    def __init__(self, store: Store, loader: Loader, branch: Branch, secrets: Callable[[Intent], None]) -> None:
        """`secrets` serves an intent that git must not see."""
        self._store = store
        self._loader = loader
        self._branch = branch
        self._secrets = secrets
        self._catalog = Catalog(store)
        self._ends = IntentEnds(store)
        self._later: set[tuple[Key, int]] = set()
        self._unfetched = Unfetched(store)

    def waiting(self) -> bool:
        """Whether there is anything to serve. Cheap."""
        return bool(self._store.scan(Internal.INTENT, limit=1).records)

    def serve(self) -> None:
        """One round, in which everybody who waits has a turn. Raises nothing: what fails is answered so."""
        if not self._loader.is_under_way:
            self._later.clear()
        self._unfetched.sweep()
        path_of = cache(self._path)
        for group in next_round([i for i in waiting(self._store) if self._is_due(i, path_of(i.key.cluster))]):
            self._take(group)

    def turn_away(self, why: str) -> None:
        """Answers everything that waits with a 503: it cannot be served here."""
        while found := waiting(self._store, _TOGETHER):
            self._ends.refuse(found, unavailable(why))

    def _is_due(self, intent: Intent, path: str) -> bool:
        if intent.deadline and intent.deadline < time.time():
            self._ends.drop(intent)
            return False
        return (intent.key, intent.revision) not in self._later and self._loader.is_past(path)

    # -- one commit's

    def _take(self, group: Sequence[Intent]) -> None:
        """What git must not see goes alone, all else in one commit, or in as many as it takes."""
        secrets = [intent for intent in group if intent.key.resource == SECRETS]
        alone = self._kept_from_git(secrets) if secrets else []
        for intent in alone:
            self._alone(intent)
        apart = {intent.id for intent in alone}
        together = [intent for intent in group if intent.id not in apart]
        parts = deque([CommitPart(together)])
        while parts:
            parts.extendleft(reversed(self._commit(parts.popleft())))

    def _commit(self, part: CommitPart) -> list[CommitPart]:
        """One commit; what of it is to be tried again, or by itself."""
        part = replace(part, intents=self._ends.standing(part.intents))
        if not part.intents:
            return []
        try:
            barred = self._barred()
            if not barred:
                return self._try(part)
            self._ends.refuse(part.intents, unavailable(barred))
        except RepositoryError as error:
            # A source may refuse what one of them wrote; one that is away is away for all.
            if part.is_shared and isinstance(error, PushRejected) and not isinstance(error, BranchCheckedOut):
                return part.halves()
            self._ends.refuse(part.intents, unavailable(f"the write cannot be committed: {error}"))
        except Exception:
            log.exception("a commit for the API failed")
            if part.is_shared:
                return part.halves()
            self._ends.refuse(part.intents, FAULT)
        return []

    def _barred(self) -> str:
        """Why no commit can be made at all for now, "" if one can."""
        trouble = tree.fleet(self._store).error
        return f"the fleet is held, see workspace root: {trouble}" if trouble else self._branch.desired.barred()

    def _try(self, part: CommitPart) -> list[CommitPart]:
        fleet = self._loader.tip()
        edits = self._edits(fleet)
        chosen, behind = self._chosen(edits, part)
        judged = self._judged(replace(part, intents=chosen), fleet, edits) if chosen else []
        return [*judged, *([CommitPart(behind)] if behind else ())]

    def _chosen(self, edits: Edits, part: CommitPart) -> tuple[list[Intent], list[Intent]]:
        """Those that are part of the commit, and those that have to come behind it. All others are answered."""
        chosen, behind = list[Intent](), list[Intent]()
        for intent in part.intents:
            try:
                if self._edited(edits, intent):
                    chosen.append(intent)
            except NotTogether:
                behind.append(intent)
        return chosen, behind

    def _judged(self, part: CommitPart, fleet: FleetRecord, edits: Edits) -> list[CommitPart]:
        chosen = {intent.key: intent for intent in part.intents}
        allowed = losses(self._store, self._catalog, part.intents, edits.path_of)
        commit = self._made(fleet, edits, part, allowed)
        if commit is None:
            for intent in part.intents:
                self._ends.aside(intent)
            return []
        noted = self._noted(commit, part)
        proposal = self._loader.propose(own(commit), chosen)
        meant = losses_with_workspaces(proposal, part.intents, edits.path_of)
        if meant - allowed:
            commit = self._made(fleet, edits, part, allowed | meant) or commit
            noted = self._noted(commit, part)
            proposal = self._loader.propose(own(commit), chosen)
        if proposal.later:
            return self._wait(part)
        if proposal.held:
            return self._apart(part, at_fault(proposal, part.intents, edits.paths, edits.path_of))
        if len(self._ends.standing(part.intents)) < len(part.intents):
            return self._apart(part, AtFault())  # somebody withdrew: it is made again without him
        if noted is not None:
            noted.result()
        return self._publish(part, fleet, commit, proposal)

    def _noted(self, commit: str, part: CommitPart) -> Future[list[int]] | None:
        """Who is behind a commit is known before it is anybody's, and goes to the disk while it is judged."""
        return pushers.begin(self._store, {commit: PushedBy.server(authors(part.intents))})

    def _publish(self, part: CommitPart, fleet: FleetRecord, commit: str, proposal: Proposal) -> list[CommitPart]:
        """Makes a commit the branch's head, and writes what it comes to."""
        try:
            self._branch.desired.publish(commit, fleet.commit.id)
        except BranchCheckedOut:
            raise
        except PushRejected as error:
            log.info("the branch moved on before %.10s: %s", commit, error)
            self._branch.catch_up()
            if self._loader.tip().commit != fleet.commit:
                return self._pushed_meanwhile(part)
            if self._loader.is_under_way:
                return self._wait(part)
            raise
        proposal.take()
        self._branch.moved(commit)
        self._ends.unwritten(part.intents, _UNREAD)
        return []

    def _edits(self, fleet: FleetRecord) -> Edits:
        tree, keys = self._loader.tree_at(fleet), self._loader.steppers.keys
        return Edits(self._store, self._catalog, self._loader.sources, tree, keys)

    def _kept_from_git(self, secrets: Sequence[Intent]) -> list[Intent]:
        """Those that no `.sops.yaml` has encrypted. Of which that cannot be told is answered when its turn comes."""
        found = list[Intent]()
        with suppress(RepositoryError):
            edits = self._edits(self._loader.tip())
            for intent in secrets:
                with suppress(StatusError):
                    found += [] if edits.encrypts(intent) else [intent]
        return found

    def _made(self, fleet: FleetRecord, edits: Edits, part: CommitPart, allowed: set[str]) -> str | None:
        """The commit; None where it would change nothing. `allowed`: which losses it allows."""
        said = message(part.intents, edits.path_of, allowed)
        return self._branch.desired.commit(fleet.commit.id, edits.draft.files, part.author, said)

    # -- what cannot be one commit

    def _pushed_meanwhile(self, part: CommitPart) -> list[CommitPart]:
        """It is made again on top of that."""
        again = part.once_more()
        if not again:
            why = "the branch is pushed to so often that the write could not be committed"
            self._ends.refuse(part.intents, unavailable(why))
        return again

    def _apart(self, part: CommitPart, at: AtFault) -> list[CommitPart]:
        """What is to be tried of a part that is held, or from which somebody withdrew. What is left in the end waits
        for the next round."""
        if part.is_shared:
            stand = {i.key for i in self._ends.standing(part.intents)}
            out = {i.author for i in part.intents if i.key in at.guilty or i.key not in stand}
            return part.without(out, at.suspects)
        for intent in part.intents:
            if intent.key in at.guilty:
                self._ends.refuse([intent], at.guilty[intent.key])
        left = [i for i in self._ends.standing(part.intents) if i.key not in at.suspects]
        return [*replace(part, intents=left).once_more(), *CommitPart([*at.suspects.values()]).halves()]

    def _wait(self, part: CommitPart) -> list[CommitPart]:
        """They are served once the commit that is under way is there; of several authors those who have to."""
        if part.is_shared:
            return part.halves()
        self._later |= {(intent.key, intent.revision) for intent in part.intents}
        return []

    def _edited(self, edits: Edits, intent: Intent) -> bool:
        """Whether the intent is part of the commit; one that is not is answered. Raises NotTogether."""
        try:
            if edits.add(intent):
                return True
            self._ends.aside(intent)
        except Outdated:
            self._ends.answer(intent, AGAIN)
        except BadFile as error:
            self._ends.refuse([intent], unreadable(error))
        except StatusError as error:
            self._ends.refuse([intent], error)
        return False

    # -- without a commit

    def _alone(self, intent: Intent) -> None:
        if not self._ends.standing([intent]):
            return
        try:
            self._secrets(intent)
        except Conflict:
            self._ends.answer(intent, AGAIN)
        except StatusError as error:
            self._ends.refuse([intent], error)
        except OSError as error:
            self._ends.refuse([intent], unavailable(f"the Secret cannot be kept: {error}"))

    def _path(self, cluster: str) -> str:
        record = tree.workspace_of(self._store, cluster)
        return record.path if record is not None else cluster

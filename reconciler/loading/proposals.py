"""Serves writes that propose: each is put on its user's branch for the workspace, and its object stays as it is.

Called by a thread of its own (commands/proposing), so that nobody who loads or commits waits for it, nor for the
network in between. What waits when it looks is served by user and workspace, each as one commit. The order makes every
crash harmless: the branch moves, then whoever waits is answered; served again, the same write adds nothing.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apiserver.model.errors import Cause, StatusError, invalid, unavailable
from apiserver.model.keys import Internal
from apiserver.model.proposals import branch_of, branches_of
from apiserver.registry import tree
from apiserver.registry.intents import Intent, proposed, proposing, refused, stands
from apiserver.storage.protocol import Check, Conflict, Delete, Op, Store
from reconciler.loading.minuterate import MinuteRate
from reconciler.loading.proposalbench import Later, ProposalBench, ProposalTurn, ProposedCommit
from reconciler.loading.trial import Trial
from reconciler.repository.errors import BranchCheckedOut, NotMerged, PushRejected, RepositoryError
from reconciler.repository.proposals import ProposalBranches

log = logging.getLogger(__name__)

_FAULT = StatusError(500, "InternalError", "the write failed in Treeplane: see its log")
_NOTHING = "nothing is proposed: no file would say what this changes"
_TRIES = 5
"""Commits tried for one turn: somebody may push to its branch meanwhile."""


@dataclass(frozen=True, slots=True)
class ProposalBounds:
    """`writes`: in one commit. `branches`: that one user has, `in_workspace`: that there are for one workspace. `rate`:
    commits of one user in a minute, `rate_in_workspace`: for one workspace; its tenant may make many
    ServiceAccounts."""

    writes: int = 128
    branches: int = 50
    in_workspace: int = 200
    rate: int = 120
    rate_in_workspace: int = 480


class Proposals:
    """Not thread-safe: one thread calls `serve`."""

    def __init__(
        self,
        store: Store,
        branches: ProposalBranches,
        trial: Trial,
        page: Callable[[str], str] = lambda _: "",
        bounds: ProposalBounds = ProposalBounds(),
    ) -> None:
        """`trial`: finds out what a branch would come to. `page`: where a pull request is opened for a branch, "" where
        that is not known."""
        self._store, self._branches, self._page, self._bounds = store, branches, page, bounds
        self._bench = ProposalBench(branches, trial)
        self._rate = MinuteRate()

    def waiting(self) -> bool:
        """Whether there is anything to serve. Cheap."""
        return bool(self._store.scan(Internal.PROPOSED, limit=1).records)

    def serve(self) -> bool:
        """One round, in which everybody who waits has a turn for each workspace. False where some have to wait for a
        commit that is being loaded. Raises nothing: what fails is answered so."""
        by_turn: dict[tuple[str, str], list[Intent]] = defaultdict(list)
        for intent in sorted(proposing(self._store), key=lambda each: each.revision):
            if intent.deadline < time.time():
                self._write(Delete(intent.place, intent.revision))
            else:
                by_turn[intent.author, intent.key.cluster].append(intent)
        done = [self._take(intents[: self._bounds.writes]) for intents in by_turn.values()]
        self._branches.repo.let_go()
        return all(done)

    def turn_away(self, why: str) -> None:
        """Answers everything that waits with a 503: it cannot be served here."""
        self._refuse(proposing(self._store), unavailable(why))

    def _take(self, intents: list[Intent]) -> bool:
        """False: they have to wait. Of those that cannot be one commit all but the first are a turn of their own."""
        try:
            self._propose(intents)
        except Later:
            return False
        except StatusError as error:
            self._refuse(intents, error)
        except NotMerged as error:
            self._refuse(intents, StatusError(409, "Conflict", f"this cannot be proposed: {error}"))
        except RepositoryError as error:
            self._refuse(intents, unavailable(f"the write cannot be proposed: {error}"))
        except Exception:
            log.exception("a proposal failed")
            self._refuse(intents, _FAULT)
        return True

    def _propose(self, intents: list[Intent]) -> None:
        for _ in range(_TRIES):
            intents = [intent for intent in intents if stands(self._store, intent)]
            if not intents:
                return
            turn = self._turn(intents)
            with self._store.view() as view:
                made = self._bench.make(view, turn)
            for intent, answer in made.others:
                self._answer(intent, answer)
            intents = [*made.intents]
            if made.held:
                self._turn_away(intents, made)
                self._take([*made.left])
                return
            try:
                if self._published(turn, made):
                    self._take([*made.left])
                    return
            except BranchCheckedOut:
                raise
            except PushRejected as error:
                log.info("%s moved on: %s", turn.branch, error)
        self._refuse(intents, unavailable("its branch is pushed to so often that nothing could be put on it"))

    def _turn(self, intents: Sequence[Intent]) -> ProposalTurn:
        """Raises StatusError where that would be too much, or the workspace is gone."""
        author, workspace = intents[0].author, tree.workspace_of(self._store, intents[0].key.cluster)
        if workspace is None:
            raise unavailable("the workspace is gone, or not served")
        name = branch_of(author, workspace.path)
        rates = {f"user {author}": self._bounds.rate, f"workspace {workspace.path}": self._bounds.rate_in_workspace}
        wait = self._rate.wait(rates)
        if wait:
            text = "too many proposals in a minute: try again later"
            raise StatusError(429, "TooManyRequests", text, retry_after=wait)
        head = self._branches.head(name)
        if head is None:
            self._check_number(author, name)
        return ProposalTurn(author, workspace.path, name, head, intents)

    def _check_number(self, author: str, name: str) -> None:
        names = self._branches.names()
        own, there = branches_of(author), f"/{name.rpartition('/')[2]}"
        for count, most, whose in (
            (sum(each.startswith(own) for each in names), self._bounds.branches, f"user {author} has"),
            (sum(each.endswith(there) for each in names), self._bounds.in_workspace, "this workspace has"),
        ):
            if count >= most:
                why = f"{whose} {count} open proposals, which is as many as there may be"
                raise StatusError(403, "Forbidden", f"{why}: have some merged, or delete their branches")

    def _published(self, turn: ProposalTurn, made: ProposedCommit) -> bool:
        """Puts the branch where it is to be, and answers. False where somebody withdrew: it is made again without
        him."""
        if not all(stands(self._store, intent) for intent in made.intents):
            return False
        if made.commit is not None and made.commit != turn.head:
            self._branches.publish(turn.branch, made.commit, turn.head)
        text = self._told(turn.branch) if made.commit is not None else _NOTHING
        text += f"; it was not judged: {made.unjudged}" if made.unjudged else ""
        for intent in made.intents:
            self._answer(intent, proposed(text))
        return True

    def _told(self, branch: str) -> str:
        page = self._page(branch)
        said = f"open a pull request: {page}" if page else "it is served once that is merged"
        return f"proposed on branch {branch}; {said}"

    def _turn_away(self, intents: list[Intent], made: ProposedCommit) -> None:
        """What would hold a workspace is refused alone: of several, each half is tried by itself."""
        if len(intents) == 1:
            self._refuse(intents, _invalid(intents[0], made.held))
            return
        half = len(intents) // 2
        for part in (intents[:half], intents[half:]):
            self._take(part)

    # -- answers

    def _refuse(self, intents: Sequence[Intent], error: StatusError) -> None:
        for intent in intents:
            self._answer(intent, refused(error))

    def _answer(self, intent: Intent, answer: dict[str, object]) -> None:
        self._write(Check(intent.place, intent.revision), *intent.answered(answer))

    def _write(self, *ops: Op) -> None:
        try:
            self._store.write(*ops).result()
        except Conflict:
            log.debug("whoever waited has given up")


def _invalid(intent: Intent, problems: Sequence[str]) -> StatusError:
    resource, _, group = intent.key.resource.partition(":")[0].partition(".")
    return invalid(resource, group, intent.key.name, [Cause("FieldValueInvalid", each) for each in problems])

"""Makes the commit of a proposal, and judges what its branch would come to were it served.

Called by proposals, for one user's writes in one workspace. Everything is looked up in the store at one moment and in
the commit that is served then; nothing is written but objects of git that no ref points to yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from apiserver.model.commits import own
from apiserver.model.errors import StatusError, unavailable
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import AGAIN, Intent, refused
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import View
from reconciler.layout.errors import BadFile
from reconciler.loading.edits import NotTogether, Outdated, unreadable
from reconciler.loading.overlay import Overlay
from reconciler.loading.proposededits import Around, ProposedEdits
from reconciler.loading.trial import NotTried, Trial
from reconciler.plan.deletions import ALLOW
from reconciler.repository.messages import one_line, with_trailers
from reconciler.repository.proposals import ProposalBranches

Object = dict[str, Any]

_LISTED = 50


class Later(Exception):
    """A commit that is being loaded has to be there first."""


class ProposalTurn(NamedTuple):
    """Writes of one user in one workspace. `path`: the workspace's; `branch`: its name, `head`: where it stands."""

    author: str
    path: str
    branch: str
    head: str | None
    intents: Sequence[Intent]


class ProposedCommit(NamedTuple):
    """`commit`: where the branch is to be, which may be where it is; None: nothing of it is any file's to say.
    `intents`: those that it is made of; `others`: what becomes of the rest, but for those that are `left` for a commit
    of their own, since one of these is in their way. `held`: why the branch would not be served, with file and line;
    `unjudged`: why that is not known."""

    commit: str | None
    intents: Sequence[Intent]
    others: Sequence[tuple[Intent, Object]]
    left: Sequence[Intent] = ()
    held: Sequence[str] = ()
    unjudged: str = ""


class ProposalBench:
    """Not thread-safe."""

    def __init__(self, branches: ProposalBranches, trial: Trial) -> None:
        self._branches, self._trial = branches, trial

    def make(self, view: View, turn: ProposalTurn) -> ProposedCommit:
        """`view`: of the store. Raises Later, StatusError where nothing can be proposed for now, and
        RepositoryError."""
        fleet = tree.fleet(view)
        if fleet.arriving or not fleet.loaded:
            raise Later
        if fleet.error:
            raise unavailable(f"the fleet is held, see workspace root: {fleet.error}")
        ground = self._branches.ground(turn.branch, turn.head, fleet.commit.id, turn.author)
        edits = self._edits(view, fleet, ground)
        chosen, others, left = [], [], []
        for intent in turn.intents:
            try:
                answer = _edited(edits, intent)
            except NotTogether:
                left.append(intent)
                continue
            if answer is None:
                chosen.append(intent)
            else:
                others.append((intent, answer))
        return self._judged(view, turn, ground, edits, ProposedCommit(None, chosen, others, left))

    def _edits(self, view: View, fleet: FleetRecord, ground: str) -> ProposedEdits:
        store = Overlay(view)
        aside = self._trial.aside(store, self._branches.repo)
        here, served = (aside.tree_at(replace(fleet, commit=commit)) for commit in (own(ground), fleet.commit))
        around = Around(store, Catalog(store), aside.sources, self._trial.loader.steppers.keys)
        return ProposedEdits(around, here, served)

    def _judged(
        self, view: View, turn: ProposalTurn, ground: str, edits: ProposedEdits, made: ProposedCommit
    ) -> ProposedCommit:
        """The commit, which allows what whoever deletes something deletes with it: it is his word for that, as with
        `writes: Commit`. Whoever merges it gives theirs."""
        served = tree.fleet(view).commit.id
        if not made.intents:
            return made
        allowed: set[str] = set()
        while True:
            message = _message(made.intents, turn.path, allowed)
            files = edits.draft.files
            commit = self._branches.commit(ground, files, turn.author, message, empty=bool(allowed)) or ground
            made = made._replace(commit=commit if commit != served else None)
            if made.commit is None or commit == turn.head:
                return made
            try:
                tried = self._trial.run(view, self._branches.repo, served, commit)
            except NotTried as why:
                return made._replace(unjudged=str(why))
            meant = {each.digest for each in tried.changes.refused.values()} - allowed
            if not (meant and any(intent.value is None for intent in made.intents)):
                held = [error for errors in tried.held.values() for error in errors]
                return made._replace(held=[*map(str, tried.problems), *held])
            allowed |= meant


def _edited(edits: ProposedEdits, intent: Intent) -> Object | None:
    """Has an intent change files; the answer to one that is no part of the commit. One that changes nothing is: what it
    asks for stands there. Raises NotTogether."""
    try:
        edits.add(intent)
    except Outdated:
        return AGAIN
    except BadFile as error:
        return refused(unreadable(error))
    except StatusError as error:
        return refused(error)
    return None


def _message(intents: Sequence[Intent], path: str, allowed: set[str]) -> str:
    trailers = {ALLOW: " ".join(sorted(allowed))} if allowed else {}
    if len(intents) == 1:
        [said] = _lines(intents)
        return with_trailers(f"Propose to {said} in {path}", [], trailers)
    lines = [*_lines(intents[:_LISTED])]
    rest = [f"and {len(intents) - _LISTED} more"] if len(intents) > _LISTED else []
    return with_trailers(f"Propose to write {len(intents)} objects in {path}", [*lines, *rest], trailers)


def _lines(intents: Sequence[Intent]) -> Iterator[str]:
    for intent in intents:
        key = intent.key
        name = one_line(f"{key.namespace}/{key.name}" if key.namespace else key.name)
        yield f"{intent.verb} {key.resource.partition(':')[0]} {name}"

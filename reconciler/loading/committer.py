"""Serves writes that wait for their commit: many intents, few commits.

Called by the reconciler's process, in the thread that loads commits, also between two workspaces of a commit that is
being loaded: then on top of that one. What waits when it looks gets a turn for each author (rounds), and a turn is a
commit. The order makes every crash harmless: the commit is made and judged (a bad write is refused before anybody sees
it), it becomes the branch's head, then objects and answers are written in one transaction for each workspace. What a
crash leaves in between is loaded like anybody's commit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.model import paths
from apiserver.model.commits import own
from apiserver.model.errors import Cause, StatusError, invalid, unavailable
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import AGAIN, DONE, KEPT, Intent, intent_key, refused, stands, waiting
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Check, Conflict, Delete, Op, Put, Store
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.loading.copies import PLACES, lost_lines, removed
from reconciler.loading.edits import Edits, Outdated, unreadable
from reconciler.loading.guard import line_of
from reconciler.loading.loader import Loader, Proposal
from reconciler.loading.rounds import next_round
from reconciler.loading.sealedsecrets import SECRETS
from reconciler.loading.unfetched import Unfetched
from reconciler.plan.deletions import ALLOW, digest
from reconciler.plan.pushedby import SERVER, PushedBy
from reconciler.repository.desired import Desired
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryError
from reconciler.repository.messages import one_line, with_trailers
from reconciler.repository.objects import Repository
from reconciler.statusbranch import pushers

log = logging.getLogger(__name__)

_TOGETHER = 1000
"""Intents that are turned away at once."""
_TRIES = 5
"""Commits tried for one group: somebody else may push between two."""
_LISTED = 50
_FAULT = StatusError(500, "InternalError", "the write failed in Treeplane: see its log")
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
        for turn in next_round(filter(self._is_due, waiting(self._store))):
            self._take(turn)

    def turn_away(self, why: str) -> None:
        """Answers everything that waits with a 503: it cannot be served here."""
        while found := waiting(self._store, _TOGETHER):
            self._refuse(found, unavailable(why))

    def _is_due(self, intent: Intent) -> bool:
        if intent.deadline and intent.deadline < time.time():
            self._drop(intent)
            return False
        return not self._has_to_wait(intent)

    # -- one author's

    def _take(self, turn: Sequence[Intent]) -> None:
        """What git must not see goes alone, all else in one commit."""
        together: list[Intent] = []
        for intent in turn:
            if intent.key.resource == SECRETS and not self._encrypts(intent):
                self._alone(intent)
            else:
                together.append(intent)
        try:
            self._commit_all(turn[0].author, together)
        except RepositoryError as error:
            self._refuse(together, unavailable(f"the write cannot be committed: {error}"))
        except Exception:
            log.exception("a commit for the API failed")
            self._refuse(together, _FAULT)

    def _commit_all(self, author: str, intents: list[Intent]) -> None:
        for _ in range(_TRIES):
            intents = [i for i in intents if self._stands(i)]
            barred = self._barred() if intents else ""
            if barred:
                self._refuse(intents, unavailable(barred))
            if barred or not intents or self._try(author, intents):
                return
        self._refuse(intents, unavailable("the branch is pushed to so often that the write could not be committed"))

    def _barred(self) -> str:
        """Why no commit can be made at all for now, "" if one can."""
        trouble = tree.fleet(self._store).error
        return f"the fleet is held, see workspace root: {trouble}" if trouble else self._branch.desired.barred()

    def _try(self, author: str, intents: list[Intent]) -> bool:
        """One commit; False where what is left of the group has to be tried again."""
        fleet = self._loader.tip()
        edits = self._edits(fleet)
        chosen = {i.key: i for i in intents if self._edited(edits, i)}
        if not chosen:
            return True
        allowed = self._allowed(chosen.values())
        commit = self._made(fleet, edits, author, chosen, allowed)
        if commit is None:
            for intent in chosen.values():
                self._aside(intent)
            return True
        proposal = self._loader.propose(own(commit), chosen)
        meant = self._meant(proposal, chosen)
        if meant - allowed:
            commit = self._made(fleet, edits, author, chosen, allowed | meant) or commit
            proposal = self._loader.propose(own(commit), chosen)
        if proposal.later:
            return self._wait(chosen.values())
        if proposal.held:
            return self._divide(author, self._turn_away(proposal, chosen, edits.paths))
        try:
            if not all(map(self._stands, chosen.values())):
                return False  # somebody withdrew: it is made again without him
            pushers.note(self._store, {commit: PushedBy(author, SERVER)})
            self._branch.desired.publish(commit, fleet.commit.id)
        except BranchCheckedOut:
            raise
        except PushRejected as error:
            log.info("the branch moved on before %.10s: %s", commit, error)
            self._branch.catch_up()
            if self._loader.tip().commit != fleet.commit:
                return False
            if self._loader.is_under_way:
                return self._wait(chosen.values())
            raise
        proposal.take()
        self._branch.moved(commit)
        self._unwritten(chosen.values())
        return True

    def _edits(self, fleet: FleetRecord) -> Edits:
        tree, keys = self._loader.tree_at(fleet), self._loader.keys
        return Edits(self._store, self._catalog, self._loader.sources, tree, keys)

    def _encrypts(self, intent: Intent) -> bool:
        """Whether a Secret is written to git; one of which that cannot be told is answered when its turn comes."""
        try:
            return self._edits(self._loader.tip()).encrypts(intent)
        except StatusError:
            return True

    def _made(
        self, fleet: FleetRecord, edits: Edits, author: str, chosen: Mapping[Key, Intent], allowed: set[str]
    ) -> str | None:
        """The commit; None where it would change nothing. `allowed`: which losses it allows."""
        message = _message(chosen.values(), self._path, {ALLOW: " ".join(sorted(allowed))} if allowed else {})
        return self._branch.desired.commit(fleet.commit.id, edits.draft.files, author, message)

    def _meant(self, proposal: Proposal, chosen: Mapping[Key, Intent]) -> set[str]:
        """Which losses somebody asks for who deletes a workspace: all that goes with it."""
        ends = (i.key for i in chosen.values() if i.value is None and i.key.resource == WORKSPACES)
        gone = {paths.join(self._path(key.cluster), key.name) for key in ends}
        return {refused.digest for path, refused in proposal.refused.items() if path in gone}

    def _unwritten(self, intents: Iterable[Intent]) -> None:
        """Answers those that their commit left as they were."""
        for intent in filter(self._stands, intents):
            live = self._store.get(intent.key)
            if live is None and intent.value is None:
                self._answer(intent, KEPT)  # it went with what it stood for
            elif (live.revision if live is not None else 0) != intent.base:
                self._answer(intent, AGAIN)  # e.g. a controller's finalizer came first, and it waits for that now
            else:
                self._refuse([intent], _UNREAD)

    def _has_to_wait(self, intent: Intent) -> bool:
        """Whether a commit that is under way has to be there first."""
        found = (intent.key, intent.revision) in self._later
        return found or not self._loader.is_past(self._path(intent.key.cluster))

    def _wait(self, intents: Iterable[Intent]) -> bool:
        """They are served once the commit that is under way is there."""
        self._later |= {(intent.key, intent.revision) for intent in intents}
        return True

    def _edited(self, edits: Edits, intent: Intent) -> bool:
        """Whether the intent is part of the commit; one that is not is answered."""
        try:
            if edits.add(intent):
                return True
            self._aside(intent)
        except Outdated:
            self._answer(intent, AGAIN)
        except BadFile as error:
            self._refuse([intent], unreadable(error))
        except StatusError as error:
            self._refuse([intent], error)
        return False

    def _turn_away(self, proposal: Proposal, chosen: Mapping[Key, Intent], paths: Mapping[Key, str]) -> list[Intent]:
        """Refuses the intents that make the commit a bad one: those whose files are at fault, or the only one that can
        be. Those among which it cannot be told."""
        suspects: list[Intent] = []
        for path, problems in proposal.held.items():
            mine = [i for i in chosen.values() if self._path(i.key.cluster) == path] or list(chosen.values())
            guilty = [i for i in mine if any(p.path == paths[i.key] for p in problems)]
            if not guilty and len(mine) > 1:
                suspects += (i for i in mine if i not in suspects)
                continue
            for intent in guilty or mine:
                told = [p for p in problems if p.path == paths[intent.key]] or problems
                self._refuse([intent], _FAULT if path in proposal.faults else _invalid(intent, told))
        return suspects

    def _divide(self, author: str, suspects: list[Intent]) -> bool:
        """Commits each half of the suspects by itself: what is good is not refused for what it happened to come with.
        False, as the rest of their group waits still."""
        half = len(suspects) // 2
        for part in filter(None, (suspects[:half], suspects[half:])):
            self._commit_all(author, part)
        return False

    def _allowed(self, intents: Iterable[Intent]) -> set[str]:
        """What a commit allows that deletes, or takes copies away: a DELETE is its user's word for that object, and
        an edit for what it does, also for a recovery. Which may know of no copy when it comes to this commit, so what
        goes itself is named without them, too."""
        edits: dict[str, dict[Key, Any]] = {}
        for intent in intents:
            edits.setdefault(intent.key.cluster, {})[intent.key] = _edit(intent)
        said: set[str] = set()
        for cluster, edited in edits.items():
            path = self._path(cluster)
            gone = [line_of(path, key) for key in removed(edited)]
            copies = lost_lines(self._store, self._catalog.kinds(cluster), path, edited)
            said |= {digest(lines) for lines in (gone, [*gone, *copies]) if lines}
        return said

    # -- without a commit

    def _alone(self, intent: Intent) -> None:
        if not self._stands(intent):
            return
        try:
            self._secrets(intent)
        except Conflict:
            self._answer(intent, AGAIN)
        except StatusError as error:
            self._refuse([intent], error)
        except OSError as error:
            self._refuse([intent], unavailable(f"the Secret cannot be kept: {error}"))

    def _aside(self, intent: Intent) -> None:
        """Writes what changes no file."""
        expect = intent.base
        op: Op = Delete(intent.key, expect) if intent.value is None else Put(intent.key, intent.value, expect)
        nothing = intent.value is None and self._store.get(intent.key) is None
        ops = intent.answered(KEPT) if nothing else [op, *intent.answered(DONE), *intent.also]
        try:
            self._store.write(*ops).result()
        except Conflict:
            self._answer(intent, AGAIN)

    # -- answers

    def _stands(self, intent: Intent) -> bool:
        return stands(self._store, intent)

    def _refuse(self, intents: Iterable[Intent], error: StatusError) -> None:
        for intent in intents:
            self._answer(intent, refused(error))
            if not intent.deadline:
                log.warning("%s of %s could not be committed: %s", intent.verb, intent.key, error)

    def _answer(self, intent: Intent, answer: dict[str, object]) -> None:
        self._write(Check(intent_key(intent.key), intent.revision), *intent.answered(answer))

    def _drop(self, intent: Intent) -> None:
        self._write(Delete(intent_key(intent.key), intent.revision))

    def _write(self, *ops: Op) -> None:
        try:
            self._store.write(*ops).result()
        except Conflict:
            log.debug("whoever waited has given up")

    def _path(self, cluster: str) -> str:
        record = tree.workspace_of(self._store, cluster)
        return record.path if record is not None else cluster


def _invalid(intent: Intent, problems: Iterable[LayoutError]) -> StatusError:
    resource, _, group = intent.key.resource.partition(":")[0].partition(".")
    causes = [Cause("FieldValueInvalid", str(p)) for p in problems]
    return invalid(resource, group, intent.key.name, causes)


def _message(intents: Collection[Intent], path_of: Callable[[str], str], allowed: dict[str, str]) -> str:
    """The commit's message: what was done to which objects of which workspaces. `allowed`: its trailers."""
    lines = [(i.verb, i.key.resource.partition(":")[0], _name(i.key), path_of(i.key.cluster)) for i in intents]
    verb, resource, name, path = lines[0]
    if len(lines) == 1:
        return with_trailers(f"{verb.capitalize()} {resource} {name} in {path}", [], allowed)
    workspaces = sorted({line[3] for line in lines})
    where = workspaces[0] if len(workspaces) == 1 else f"{len(workspaces)} workspaces"
    many = len(workspaces) > 1
    listed = [f"{verb} {resource} {name}" + (f" in {path}" if many else "") for verb, resource, name, path in lines]
    rest = [f"and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
    return with_trailers(f"Write {len(lines)} objects in {where}", [*listed[:_LISTED], *rest], allowed)


def _edit(intent: Intent) -> dict[str, Any] | None:
    """See copies.Edits; of what takes no copies away only whether it goes."""
    if intent.value is None:
        return None
    value: dict[str, Any] = orjson.loads(intent.value) if intent.key.resource in PLACES else {}
    return value


def _name(key: Key) -> str:
    """One word of a line: a name with line breaks must not say what stands in a message by itself."""
    return one_line(f"{key.namespace}/{key.name}" if key.namespace else key.name)

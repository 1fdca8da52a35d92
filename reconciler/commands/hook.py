"""`treeplane hook pre-receive`: what a push would do, and whether it is refused, on any git server, with none of ours.

Called by the command line, which git runs in the repository with what it keeps the push in. What is served the status
branch of that repository says; whether whoever signed may touch what is touched review/barring finds out, what the push
comes to review/foresight, the words are answers'. (The repository that Treeplane hosts asks the server instead, see
pushes.) What cannot be judged is taken, and that is said; refused, where the served fleet says who may push what.

Whom a forge says that it let in is not asked: its users are not ours, and its variables anybody's who runs this.
"""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from apiserver.model.commits import own
from apiserver.model.failures import described
from reconciler.commands import answers, fleetfolder
from reconciler.commands.failure import Failure
from reconciler.commands.rendering import renderer_of_user
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import FILE, REFUSE, FleetConfig, read_fleet
from reconciler.layout.tree import ROOT
from reconciler.loading.gate import Gate
from reconciler.loading.trial import Tried, newly
from reconciler.loading.vouching import Vouching
from reconciler.rendering.rendering import Renders
from reconciler.repository.borrowed import borrow
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecords
from reconciler.review.barring import barred
from reconciler.review.ends import End, Ends
from reconciler.review.foresight import foresee
from reconciler.signatures.verifier import Verifier
from reconciler.statusbranch.clones import recorded_for
from reconciler.statusbranch.naming import Undecided
from reconciler.statusbranch.recorded import RecordedFleet

log = logging.getLogger(__name__)

_LINE = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (\S+)\n?")
_NOTHING = "0" * 40
_HEADS = "refs/heads/"


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """Of one push, to be printed."""

    refuses: bool = False
    lines: list[str] = field(default_factory=list)


class _RefMove(NamedTuple):
    old: str
    new: str
    ref: str


class _NotJudged(Exception):
    """Says why."""


def judge_push(
    environment: Mapping[str, str], given: Iterable[str], signers: Path | None = None, folder: str = ""
) -> HookAnswer:
    """`given`: a line `<old> <new> <ref>` for each ref. One at most is the served branch. `signers`: as `keys/signers`
    of a server. `folder`: in which the fleet stands, "": at the top, or in the only one."""
    git_dir = Path(environment.get("GIT_DIR", ".")).absolute()
    moves = [_RefMove(*found.groups()) for line in given if (found := _LINE.fullmatch(line)) is not None]
    for move in moves:
        if move.old == _NOTHING or not move.ref.startswith(_HEADS):
            continue  # a branch that begins
        with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch, closing(renderer_of_user()) as renders:
            judging = _Judging(Path(scratch), git_dir, [*_pushed(environment)], signers, renders, folder)
            answer = judging.answer(move, moves)
        if answer is not None:
            return answer
    return HookAnswer()


def _pushed(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where git keeps what is pushed, and what that builds on."""
    names = [environment.get("GIT_QUARANTINE_PATH") or environment.get("GIT_OBJECT_DIRECTORY", "")]
    names += environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "").split(":")
    yield from (Path(name) for name in names if name and '"' not in name and "\n" not in name)


class _Judging:
    """Of one branch that moves. What is served is read from the repository as it stands, without what is pushed."""

    def __init__(
        self, scratch: Path, git_dir: Path, pushed: Iterable[Path], signers: Path | None, renders: Renders, folder: str
    ) -> None:
        self._scratch, self._git_dir, self._pushed, self._renders = scratch, git_dir, pushed, renders
        self._folder = folder
        self._vouching = Vouching(PushRecords(None), Verifier(None, scratch), signers or scratch / "nobody")
        self._must = True  # for all that is known so far

    def answer(self, move: _RefMove, moves: Sequence[_RefMove]) -> HookAnswer | None:
        """None where the ref is not the served branch. `moves`: all of the push."""
        try:
            return self._run(move, moves)
        except _NotJudged as why:
            return self._unjudged(str(why))
        except RepositoryError as error:
            return self._unjudged(str(error))
        except Exception as error:
            log.error("a push could not be judged\n%s", described(error))
            return self._unjudged("of a fault in this program")

    def _unjudged(self, why: str) -> HookAnswer:
        begin = "refused, since it could not be judged" if self._must else "taken without being judged"
        return HookAnswer(self._must, [answers.harmless(f"{begin}: {why}")])

    def _run(self, move: _RefMove, moves: Sequence[_RefMove]) -> HookAnswer | None:
        old, new, ref = move
        there = Repository(self._git_dir)
        try:
            fleetfolder.settle(there, None, self._git_dir, self._folder)
        except Failure as several:
            raise _NotJudged(", ".join(several.message.splitlines())) from None
        recorded = self._recorded(there, move)
        if recorded is None or ref != f"{_HEADS}{recorded.facts().branch}":
            return None
        config = _served(there, recorded)
        self._must = config.asks_who
        if (self._must or config.push == REFUSE) and len([each for each in moves if each.ref == ref]) > 1:
            return HookAnswer(True, [answers.harmless(f"refused, since it moves {ref} twice")])
        if new == _NOTHING:
            if self._must:
                raise _NotJudged("the branch ends")
            return None
        repo = borrow(there, self._scratch / "repo", [*self._pushed])
        recorded = RecordedFleet(repo, recorded.commit.id)
        is_on = repo.is_ancestor(recorded.source.id, old)
        if not repo.is_ancestor(old, new):
            raise _NotJudged("the branch is rewritten")
        ends = Ends(repo, End(own(old), "what is there"), End(own(new), "what is pushed"), recorded if is_on else None)
        why = self._barred(ends, recorded, config) if self._must else ()
        if why:
            return HookAnswer(True, [*answers.barred(why)])
        if not is_on:
            return HookAnswer(lines=["taken without being judged: the branch was rewritten since it was served"])
        found = self._tried(ends)
        if found.holds and config.push == REFUSE:
            return HookAnswer(True, [*answers.refusal(found)])
        return HookAnswer(lines=[*answers.foretold(new, found)])

    def _recorded(self, there: Repository, move: _RefMove) -> RecordedFleet | None:
        try:
            return recorded_for(there, move.old, tracked=False)
        except Undecided as several:
            found = [RecordedFleet(there, each.commit) for each in several.candidates]
            ours = [each for each in found if move.ref == f"{_HEADS}{each.facts().branch}"]
            if any(_served(there, each).asks_who for each in ours):
                raise _NotJudged(f"of {several} each may be the status branch: delete the ones that are not") from None
            return None

    def _barred(self, ends: Ends, recorded: RecordedFleet, config: FleetConfig) -> tuple[LayoutError, ...]:
        gate = Gate(ends.repo, self._vouching, recorded.facts().branch)
        return barred(ends, recorded, gate, config, self._scratch, self._renders)

    def _tried(self, ends: Ends) -> Tried:
        found = foresee(ends, self._scratch, self._renders)
        held = newly(found.held_before, {path: [*map(str, errors)] for path, errors in found.found.held.items()})
        # Where nothing was served before, this push is not to blame.
        problems = tuple(map(str, found.problems)) if found.problems and _is_fleet(ends) else ()
        return Tried(held, problems, found.found)


def _is_fleet(ends: Ends) -> bool:
    tree = ends.repo.commit(ends.base.commit.id).tree
    try:
        read_fleet(ends.repo, tree)
    except BadFile:
        return False
    return ends.repo.tree_at(tree, joined(ends.repo.folder_at(tree), ROOT)) is not None


def _served(there: Repository, recorded: RecordedFleet) -> FleetConfig:
    """Raises _NotJudged where it cannot be read, though it is served: another version wrote it."""
    try:
        return read_fleet(there, there.commit(recorded.source.id).tree)
    except BadFile as bad:
        raise _NotJudged(f"this version of Treeplane cannot read the served {FILE} ({bad.errors[0]})") from bad

"""`treeplane hook pre-receive`: what a push would do, and whether it is refused, on any git server, with none of ours.

Called by the command line, which git runs in the repository with what it keeps the push in. What is served the status
branch of that repository says; what the push comes to is review/foresight's to find out, the words are answers'. (The
repository that Treeplane hosts asks the server instead, see pushes.) What cannot be judged is taken, and that is said.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.model.commits import own
from reconciler.commands import answers
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import REFUSE, read_fleet
from reconciler.layout.tree import ROOT
from reconciler.loading.trial import Tried, newly
from reconciler.repository.borrowed import borrow
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.review.ends import End, Ends
from reconciler.review.foresight import foresee
from reconciler.statusbranch.clones import recorded_for
from reconciler.statusbranch.naming import Undecided
from reconciler.statusbranch.recorded import RecordedFleet

_LINE = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (\S+)\n?")
_NOTHING = "0" * 40


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """Of one push, to be printed."""

    refuses: bool = False
    lines: list[str] = field(default_factory=list)


def judge_push(environment: Mapping[str, str], given: Iterable[str]) -> HookAnswer:
    """`given`: a line `<old> <new> <ref>` for each ref. One at most is the served branch."""
    git_dir = Path(environment.get("GIT_DIR", ".")).absolute()
    for line in given:
        found = _LINE.fullmatch(line)
        if found is None or _NOTHING in found.groups():
            continue  # a branch that begins or ends
        old, new, ref = found.groups()
        try:
            with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
                answer = _Judging(Path(scratch), git_dir, [*_pushed(environment)]).run(old, new, ref)
        except RepositoryError as error:
            return HookAnswer(lines=[f"taken without being judged: {answers.harmless(str(error))}"])
        if answer is not None:
            return answer
    return HookAnswer()


def _pushed(environment: Mapping[str, str]) -> Iterator[Path]:
    """Where git keeps what is pushed, and what that builds on."""
    names = [environment.get("GIT_QUARANTINE_PATH") or environment.get("GIT_OBJECT_DIRECTORY", "")]
    names += environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "").split(":")
    yield from (Path(name) for name in names if name and '"' not in name and "\n" not in name)


class _Judging:
    """Raises RepositoryError."""

    def __init__(self, scratch: Path, git_dir: Path, pushed: Iterable[Path]) -> None:
        self._scratch, self._there = scratch, Repository(git_dir)
        self._repo = borrow(self._there, scratch / "repo", [*pushed])

    def run(self, old: str, new: str, ref: str) -> HookAnswer | None:
        """None where the ref is not the served branch."""
        try:
            recorded = recorded_for(self._there, old)
        except Undecided:
            recorded = None
        if recorded is None or ref != f"refs/heads/{recorded.facts().branch}":
            return None
        if not self._repo.is_ancestor(recorded.source.id, old) or not self._repo.is_ancestor(old, new):
            return HookAnswer(lines=["taken without being judged: the branch is rewritten, or was since it was served"])
        found = self._tried(RecordedFleet(self._repo, recorded.commit.id), old, new)
        if found.holds and self._setting(recorded) == REFUSE:
            return HookAnswer(refuses=True, lines=[*answers.refusal(found)])
        return HookAnswer(lines=[*answers.foretold(new, found)])

    def _tried(self, recorded: RecordedFleet, old: str, new: str) -> Tried:
        ends = Ends(self._repo, End(own(old), "what is there"), End(own(new), "what is pushed"), recorded)
        found = foresee(ends, self._scratch)
        held = newly(found.held_before, {path: [*map(str, errors)] for path, errors in found.found.held.items()})
        # Where nothing was served before, this push is not to blame.
        problems = tuple(map(str, found.problems)) if found.problems and self._is_fleet(old) else ()
        return Tried(held, problems, found.found)

    def _is_fleet(self, commit: str) -> bool:
        tree = self._repo.commit(commit).tree
        try:
            read_fleet(self._repo, tree)
        except BadFile:
            return False
        return self._repo.tree_at(tree, ROOT) is not None

    def _setting(self, recorded: RecordedFleet) -> str:
        try:
            return read_fleet(self._repo, self._repo.commit(recorded.source.id).tree).push
        except BadFile:
            return ""

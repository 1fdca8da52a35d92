"""What a clone is asked by: a revision as somebody typed it, and whether the clone has what an answer takes.

Called by ends, and by the history of a fleet. Nothing is guessed: what may mean two commits names none.
"""

from __future__ import annotations

import re

from reconciler.repository import origin
from reconciler.repository.command import git
from reconciler.repository.objects import Repository
from reconciler.statusbranch.clones import recorded_for
from reconciler.statusbranch.naming import Undecided
from reconciler.statusbranch.recorded import RecordedFleet

_SHORT = re.compile(r"[0-9a-f]{4,39}")
_KINDS = {"refs/heads/": "a branch", "refs/tags/": "a tag"}


class BadRange(Exception):
    """What was asked for names nothing. `hint`: what to do."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


def require_whole(clone: Repository, what: str) -> None:
    """That no commit, file or branch is missing. `what`: could not be told without. Raises BadRange."""
    incomplete, narrow = origin.incomplete(clone), origin.narrow(clone)
    remedy = "; ".join(each for each in (incomplete, narrow) if each)
    if incomplete:
        raise BadRange(f"this clone is not whole, so {what} cannot be told", f"complete it: {remedy}")
    if narrow:
        raise BadRange("this clone fetches one branch alone, so what is served is not known", f"complete it: {remedy}")


def recorded_of(clone: Repository, commit: str) -> RecordedFleet | None:
    """What the newest status commit says of the fleet that a commit is of; None where the clone has none. Raises
    BadRange."""
    try:
        return recorded_for(clone, commit)
    except Undecided as error:
        text = f"commits name several status branches, and each is one: {error}"
        raise BadRange(text, "delete the ones that are none") from error


def resolve(clone: Repository, revision: str) -> str:
    """The commit that a revision names, or one of origin's branches. Raises BadRange."""
    several = {prefix: found for prefix in _KINDS if (found := clone.resolve(prefix + revision)) is not None}
    if len(set(several.values())) > 1:
        text = " and ".join(f"{_KINDS[prefix]} ({commit:.10})" for prefix, commit in several.items())
        meant = " or ".join(prefix + revision for prefix in several)
        raise BadRange(f"{revision} is {text}", f"say which is meant: {meant}")
    found = clone.resolve(revision) or clone.resolve(f"origin/{revision}")
    if found is None:
        begins = _beginning(clone, revision)
        if len(begins) > 1:
            shown = ", ".join(each[: len(revision) + 4] for each in begins[:5])
            raise BadRange(f"{revision} begins several ids: {shown}", "give more digits")
        raise BadRange(f"{revision} names no commit here", "give a commit, branch or tag; or fetch it: git fetch")
    return found


def _beginning(clone: Repository, text: str) -> list[str]:
    """The ids that begin with some digits."""
    if _SHORT.fullmatch(text) is None:
        return []
    return git(clone.git_dir, "rev-parse", f"--disambiguate={text}").output.split()

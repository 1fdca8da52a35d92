"""What a forge is told of a commit: a status for each workspace that it changed, held or mended, and one for all.

An announcer (announcements). The status for all comes first, so that a forge which takes no more has that one. It
counts the workspaces that have none of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote

from reconciler.controllers.announcements import Announcement
from reconciler.forges.commitstatus import SUMMARY, CommitStatus, StatusForge, context_of, described
from reconciler.plan.outcome import HELD, CommitOutcome, WorkspaceOutcome

_WORDS = (HELD, "created", "configured", "moved", "deleted")
"""In the order in which counts are told."""


class CommitStatuses:
    """`speak`: the forge, as it can be spoken to now. `target`: where a status leads (see `Reconciling`)."""

    def __init__(self, speak: Callable[[], StatusForge], target: str = "") -> None:
        self._speak, self._target = speak, target

    def __call__(self, outcome: CommitOutcome) -> Iterator[Announcement]:
        for status in statuses(outcome, self._target):
            said = hashlib.sha256("\0".join(map(str, status)).encode()).hexdigest()
            yield Announcement(status.context, said, partial(self._send, outcome.commit, status))

    def _send(self, commit: str, status: CommitStatus) -> None:
        self._speak().state(commit, status)


def statuses(outcome: CommitOutcome, target: str = "") -> Iterator[CommitStatus]:
    """Of one that is known in part alone there is none for all."""
    commit = outcome.commit
    if not outcome.partial:
        yield CommitStatus(SUMMARY, outcome.good, described(_summed_up(outcome)), _leading(target, commit, ""))
    for each in outcome.workspaces:
        url = _leading(target, commit, each.path)
        yield CommitStatus(context_of(each.path), not each.held, described(_of_one(each)), url)


def _summed_up(outcome: CommitOutcome) -> str:
    said = _summary(outcome)
    return f"{said}; pushed by {outcome.pushed_by}" if outcome.pushed_by else said


def _summary(outcome: CommitOutcome) -> str:
    if outcome.problems:
        return f"not served: {outcome.problems[0]}"
    counts = ", ".join(f"{outcome.counts[word]} {word}" for word in _WORDS if outcome.counts.get(word))
    if not counts:
        return "served; it changes no workspace"
    return f"{counts}; {outcome.untold} of them have no status of their own" if outcome.untold else counts


def _of_one(each: WorkspaceOutcome) -> str:
    if each.held:
        return each.errors[0] if each.errors else HELD
    return f"{each.became}; not held any more" if each.mended else each.became


def _leading(target: str, commit: str, path: str) -> str:
    return target.replace("{commit}", quote(commit, safe="")).replace("{workspace}", quote(path, safe=":"))

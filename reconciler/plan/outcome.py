"""What became of a commit, in brief: how many workspaces of which kind, and of some of them why.

Made by loading/outcomes of what a load came to, kept in the store as JSON, and told further by
controllers/commitstatuses and controllers/commithook. It is bounded whatever a commit does: those that are held come
first, and the counts are of all. Nothing stands in it but what a workspace's condition and the answer to a push say as
well. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import orjson

from reconciler.plan.pushedby import NOBODY, PushedBy

MOST = 50
"""Workspaces of a commit that are told of one by one."""
_SOME = 20 * MOST
"""So many are held in memory while all are counted."""
_ERRORS, _LONG = 5, 500
"""Errors of a workspace that are told, and characters of one."""

HELD, DELETED, CONFIGURED = "held", "deleted", "configured"


@dataclass(frozen=True, slots=True)
class WorkspaceOutcome:
    """`became`: a word of ChangeKind. `mended`: it was held, and is not any more. `errors`: why it is held; of many
    and of long ones the beginning."""

    path: str
    became: str
    mended: bool = False
    errors: tuple[str, ...] = ()

    @property
    def held(self) -> bool:
        return self.became == HELD


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """`counts`: of all workspaces that the commit changed, by what became of them; `workspaces`: MOST of them.
    `problems`: why the commit is held as a whole. `pushed_by`: who is known to be behind it. `partial`: nothing is
    known but what is told one by one, since it came up after the commit was told of and forgotten."""

    commit: str
    fleet: str = ""
    branch: str = ""
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    workspaces: tuple[WorkspaceOutcome, ...] = ()
    problems: tuple[str, ...] = ()
    partial: bool = False
    pushed_by: PushedBy = NOBODY

    @property
    def good(self) -> bool:
        return not self.problems and not self.counts.get(HELD)

    @property
    def untold(self) -> int:
        """Workspaces that are counted alone."""
        return max(0, sum(self.counts.values()) - len(self.workspaces))

    def encode(self) -> bytes:
        return orjson.dumps({name: _plain(getattr(self, name)) for name in self.__slots__})

    @staticmethod
    def decode(value: bytes) -> CommitOutcome:
        found: dict[str, Any] = orjson.loads(value)
        some = tuple(WorkspaceOutcome(**{**w, "errors": tuple(w["errors"])}) for w in found.pop("workspaces"))
        by = PushedBy.from_json(found.pop("pushed_by", {}))
        return CommitOutcome(**{**found, "problems": tuple(found["problems"]), "workspaces": some, "pushed_by": by})


class OutcomeTally:
    """Counts workspaces of a commit, and keeps those that are told of one by one."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._kept: list[WorkspaceOutcome] = []

    def add(self, each: WorkspaceOutcome) -> None:
        self.counts[str(each.became)] = self.counts.get(each.became, 0) + 1
        self._kept.append(each)
        if len(self._kept) > _SOME:
            self._kept = self._chosen()

    def of(self, commit: CommitOutcome) -> CommitOutcome:
        """The same with what became of workspaces."""
        return replace(commit, counts=self.counts, workspaces=tuple(self._chosen()))

    def _chosen(self) -> list[WorkspaceOutcome]:
        return sorted(self._kept, key=lambda each: (not each.held, not each.mended, each.path))[:MOST]


def outcome(of: CommitOutcome, all_of_it: Iterable[WorkspaceOutcome]) -> CommitOutcome:
    """The same with what became of workspaces."""
    found = OutcomeTally()
    for each in all_of_it:
        found.add(each)
    return found.of(of)


def turned(before: CommitOutcome, now: WorkspaceOutcome) -> CommitOutcome:
    """The same after a workspace of the commit came to be held, or not any more, without another commit."""
    was = next((each for each in before.workspaces if each.path == now.path), None)
    old = was.became if was is not None else (CONFIGURED if now.held else HELD)
    counts = dict(before.counts)
    if counts.get(old):
        counts[old] -= 1
    counts[str(now.became)] = counts.get(now.became, 0) + 1
    others = [each for each in before.workspaces if each.path != now.path]
    # Whoever was told that it is held is told that it is not, however many there are.
    return replace(before, counts={k: n for k, n in counts.items() if n}, workspaces=(now, *others)[:MOST])


def told_errors(errors: Iterable[object]) -> tuple[str, ...]:
    """As they are kept: few, and none of them long."""
    found = [str(error) for _, error in zip(range(_ERRORS), errors, strict=False)]
    return tuple(text if len(text) <= _LONG else f"{text[: _LONG - 1]}…" for text in found)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, WorkspaceOutcome):
        return {name: _plain(getattr(value, name)) for name in value.__slots__}
    if isinstance(value, PushedBy):
        return value.as_json()
    return dict(value) if isinstance(value, Mapping) else value

"""Who pushed what to the repository that the server hosts, from where, when, and what came of it: a log of its own.

Written by API workers (endpoints/gitpushes), read by `treeplane pushes`; both on the server's machine. Lines of JSON in
the data directory:

- `pushes.log`: of each push that git is asked about a line before it begins, and one before its pusher hears of the
  end. Both are on the disk by then. So no ref moves without a line; where there is no second one, the process ended in
  between.
- `pushes-refused.log`: of who was not let in, or while no push is taken. It is a file of its own, so that who may not
  push cannot push out what others did; within a minute a few are told by each, and some by all, the rest is a number.

A push by a path of this machine is in neither: who makes one may write these files.
"""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from apiserver.logs.rotated import RotatedFile
from apiserver.model.redaction import redact

ACCEPTED, HELD, REFUSED, UNKNOWN = "accepted", "held", "refused", "unknown"
"""HELD: taken, and nothing or not all of it is served."""
WINDOW = 60.0
_MIB = 1024 * 1024
_REFS = 100
"""Of a push; of more there is a number."""
_NAME, _GROUPS, _WORDS = 500, 50, 4000
_OF_EACH, _OF_ALL = 5, 30
"""Refusals within WINDOW that are told by themselves."""


@dataclass(frozen=True, slots=True)
class Pusher:
    """Who, from where, by which request. `user`: "" where nobody knows."""

    user: str
    groups: tuple[str, ...]
    address: str
    request: str

    def facts(self) -> dict[str, Any]:
        groups = [group[:_NAME] for group in self.groups[:_GROUPS]]
        found = {**asdict(self), "user": self.user[:_NAME], "groups": groups}
        more = len(self.groups) - len(groups)
        return {**found, "moreGroups": more} if more else found


@dataclass(frozen=True, slots=True)
class PushedRef:
    """`old`, `new`: ids, all zeros where the ref was or is to be none."""

    ref: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RefOutcome:
    """`result`: ACCEPTED, HELD, REFUSED, UNKNOWN. `reason`: git's, where it refused."""

    ref: str
    result: str
    reason: str = ""


@dataclass(slots=True)
class Refusals:
    """Of one process: which are told by themselves."""

    since: float = 0.0
    told: Counter[tuple[str, str]] = field(default_factory=Counter)
    left: int = 0

    def tells(self, pusher: Pusher, now: float) -> bool:
        if now - self.since >= WINDOW:
            self.since, self.told = now, Counter()
        who = pusher.user[:_NAME], pusher.address
        if self.told[who] >= _OF_EACH or self.told.total() >= _OF_ALL:
            self.left += 1
            return False
        self.told[who] += 1
        return True


class PushLog:
    """In a data directory. Everything but `refused` raises OSError where it cannot be written."""

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self._durable = durable
        self.pushes = RotatedFile(data_dir / "pushes.log", 10 * _MIB, 10)
        self.refusals = RotatedFile(data_dir / "pushes-refused.log", 4 * _MIB, 3)
        self._counted = Refusals()

    def begun(self, pusher: Pusher, refs: Iterable[PushedRef], served: str) -> str:
        """What `ended` is told. `served`: the ref that is served, which is never among those that are a number."""
        push, refs = secrets.token_hex(8), sorted(refs, key=lambda each: each.ref != served)
        some = [asdict(each) for each in refs[:_REFS]]
        more = {"moreRefs": len(refs) - len(some)} if len(refs) > len(some) else {}
        self._append(self.pushes, {"push": push, "begun": time.time(), **pusher.facts(), "refs": some, **more})
        return push

    def ended(self, push: str, outcomes: Mapping[str, RefOutcome], words: str) -> None:
        """`words`: what the pusher is shown."""
        some = [asdict(each) for each in list(outcomes.values())[:_REFS]]
        self._append(self.pushes, {"push": push, "ended": time.time(), "outcomes": some, "words": _told(words)})

    def refused(self, pusher: Pusher, words: str) -> bool:
        """Whether it is told by itself; of the others `count` tells. Raises OSError."""
        if not self._counted.tells(pusher, time.monotonic()):
            return False
        self._append(self.refusals, {"refused": time.time(), **pusher.facts(), "words": _told(words)})
        return True

    def count(self) -> None:
        """Tells how many refusals there were beyond those that were told. Raises OSError."""
        left, self._counted.left = self._counted.left, 0
        if left:
            self._append(self.refusals, {"refused": time.time(), "count": left})

    def _append(self, file: RotatedFile, line: dict[str, Any]) -> None:
        durable = self._durable and file is self.pushes
        file.append(f"{json.dumps(line)}\n".encode(), durable=durable)


def _told(words: str) -> str:
    """Without passwords in URLs: what is wrong with a file is told with what stands there."""
    return redact(words)[:_WORDS]

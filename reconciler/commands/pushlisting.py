"""What `treeplane pushes` prints: who pushed what, from where, when, and what came of it, the newest first.

Read from the files that API workers write (apiserver/pushlog), on the server's machine, whether a server runs or not.
What pushers chose is made harmless where it is printed. What is no line of such a file (half of one, after a crash) is
left out and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apiserver.logs.rotated import RotatedFile
from apiserver.model.brief import brief
from apiserver.model.commits import shortened
from apiserver.model.counts import counted
from apiserver.pushlog import ACCEPTED, REFUSED, UNKNOWN, PushLog
from reconciler.commands.statuswords import DATA

_ID, _WHY, _CELL = 10, 80, 60
_ZERO = re.compile("0+")
_UNFINISHED = "no end is written: the push is under way, or the server ended in the middle of it"


@dataclass(frozen=True, slots=True)
class ListedRef:
    ref: str
    old: str
    new: str
    result: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ListedPush:
    """`at`: seconds since 1970. `refs`: none where git was not asked. `count`: of more refusals than are told."""

    at: float
    user: str
    groups: tuple[str, ...]
    address: str
    request: str
    refs: tuple[ListedRef, ...]
    words: str
    count: int = 0

    def document(self) -> dict[str, Any]:
        found = {"time": _time(self.at), **asdict(self), "result": self.result, "words": self.words.splitlines()}
        found["refs"], found["groups"] = [asdict(each) for each in self.refs], [*self.groups]
        del found["at"]
        return found if self.count else {name: value for name, value in found.items() if name != "count"}

    @property
    def result(self) -> str:
        """Of all of it: `mixed` where refs came out differently."""
        results = {each.result for each in self.refs} or {REFUSED}
        return results.pop() if len(results) == 1 else "mixed"


@dataclass(frozen=True, slots=True)
class ListedPushes:
    """`unread`: lines that are none."""

    listed: tuple[ListedPush, ...]
    unread: int = 0

    def told(self, form: str) -> str:
        if form in DATA:
            return DATA[form]({"pushes": [each.document() for each in self.listed], "unread": self.unread})
        lines = _columns([_HEAD, *(row for each in self.listed for row in _rows(each))]) if self.listed else [_NOBODY]
        if self.unread:
            unread = counted(self.unread, "line that is no record of a push", "lines that are no records of pushes")
            lines.append(f"not read: {unread}")
        return "".join(f"{line}\n" for line in lines)


_HEAD = ("TIME", "USER", "ADDRESS", "REF", "FROM", "TO", "RESULT", "WHY")
_NOBODY = "no push is written down here, or none that was asked for"


def pushes(data_dir: Path, user: str = "", since: float = 0.0, most: int = 0) -> ListedPushes:
    """`since`: seconds since 1970. `most`: 0 for all. Raises OSError."""
    log, unread = PushLog(data_dir), 0
    found: dict[str, ListedPush] = {}
    refused: list[ListedPush] = []
    for line in _lines(log.pushes):
        try:
            if "begun" in line:
                found[str(line["push"])] = _begun(line)
            elif str(line["push"]) in found:  # else its beginning is too old to be there still
                found[str(line["push"])] = _ended(found[str(line["push"])], line)
        except (KeyError, TypeError, ValueError, AttributeError):
            unread += 1
    for line in _lines(log.refusals):
        try:
            refused.append(_refused(line))
        except (KeyError, TypeError, ValueError, AttributeError):
            unread += 1
    wanted = [each for each in (*found.values(), *refused) if each.at >= since and user in ("", each.user)]
    wanted.sort(key=lambda each: each.at, reverse=True)
    return ListedPushes(tuple(wanted[:most] if most else wanted), unread)


def _lines(file: RotatedFile) -> Iterator[dict[str, Any]]:
    for each in file.files():
        with each.open("rb") as handle:
            for line in handle:
                try:
                    found = json.loads(line)
                except ValueError:
                    found = None
                yield found if isinstance(found, dict) else {}


def _begun(line: dict[str, Any]) -> ListedPush:
    refs = tuple(ListedRef(str(r["ref"]), str(r["old"]), str(r["new"]), UNKNOWN) for r in line["refs"])
    return ListedPush(float(line["begun"]), *_who(line), refs, _UNFINISHED)


def _ended(push: ListedPush, line: dict[str, Any]) -> ListedPush:
    said = {str(each["ref"]): each for each in line["outcomes"]}
    refs = tuple(
        ListedRef(r.ref, r.old, r.new, str(o["result"]), str(o.get("reason", ""))) if (o := said.get(r.ref)) else r
        for r in push.refs
    )
    return ListedPush(push.at, push.user, push.groups, push.address, push.request, refs, str(line["words"]))


def _refused(line: dict[str, Any]) -> ListedPush:
    if "count" in line:
        count = int(line["count"])
        return ListedPush(float(line["refused"]), "", (), "", "", (), f"{count} more that were not let in", count)
    return ListedPush(float(line["refused"]), *_who(line), (), str(line["words"]))


def _who(line: dict[str, Any]) -> tuple[str, tuple[str, ...], str, str]:
    return str(line["user"]), tuple(map(str, line["groups"])), str(line["address"]), str(line["request"])


def _rows(push: ListedPush) -> Iterator[tuple[str, ...]]:
    first = _time(push.at), push.user or "-", push.address or "-"
    if not push.refs:
        yield (*first, "-", "-", "-", push.result, _why(push.words))
    for each in push.refs:
        why = "" if each.result == ACCEPTED else push.words or each.reason
        yield (*first, each.ref, _short(each.old), _short(each.new), each.result, _why(why) or each.reason)


def _why(words: str) -> str:
    return brief(words.partition("\n")[0].removeprefix("treeplane: "), _WHY)


def _short(commit: str) -> str:
    return "-" if _ZERO.fullmatch(commit) else shortened(commit, _ID)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    plain = [[*(brief(cell, _CELL) for cell in row[:-1]), brief(row[-1], _WHY)] for row in rows]
    widths = [max(len(row[at]) for row in plain) for at in range(len(_HEAD))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in plain]

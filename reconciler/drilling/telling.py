"""A drill, told: for people, and as data. Called by the command line.

Names are whoever's who may push; in every form they are text and nothing else (review/telling/harmless).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

from apiserver.model import clock
from apiserver.model.counts import counted
from reconciler.drilling.comparison import CHANGED, MADE, MISSING, RecordDifference
from reconciler.drilling.freshclone import Unpushed
from reconciler.drilling.keysneeded import NeededKey
from reconciler.drilling.result import Drill, RecoveryPoint
from reconciler.review.telling.harmless import plain, quoted

Object = dict[str, Any]

_FILES, _FIELDS, _NAMES, _WHY = 200, 10, 10, 5
_DIGITS = 10
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
_WORDS = {
    MISSING: "is not recorded again",
    MADE: "is recorded, and the branch has no such file",
    CHANGED: "is recorded otherwise",
}


def as_text(drill: Drill) -> str:
    """The verdict, what is wrong, time and point, and what a repository alone does not bring back."""
    return "".join(f"{plain(line)}\n" for line in _lines(drill))


def as_json(drill: Drill) -> str:
    return quoted(json.dumps(told(drill), indent=2), "\\u%04x") + "\n"


def as_yaml(drill: Drill) -> str:
    return quoted(yaml.safe_dump(told(drill), sort_keys=False, width=10**9), "\\x%02x")


FORMS: Mapping[str, Callable[[Drill], str]] = {"text": as_text, "json": as_json, "yaml": as_yaml}


def _lines(drill: Drill) -> Iterator[str]:
    found = drill.found
    was = counted(found.workspaces, "workspace") + (f", {found.held} held as they were" if found.held else "")
    if drill.same:
        yield f"recovery gives what is recorded, byte for byte: {was}"
    else:
        count = len(found.differences) + len(found.lost)
        yield f"recovery does not give what is recorded: {counted(count, 'difference')}, {was}"
    yield from _wrong(drill)
    if found.ours is False:
        yield f"  {drill.point.status_branch} is not signed by keys/commits: somebody else wrote it, or had another key"
    yield from _time(drill)
    yield from _point(drill.point)
    yield from _backup(drill)
    yield from _beside(drill)


def _wrong(drill: Drill) -> Iterator[str]:
    for path, why in sorted(drill.found.lost.items()):
        yield f"  workspace {path} cannot be brought back:"
        yield from (f"    {line}" for line in _cut(why, _WHY))
    for each in drill.found.differences[:_FILES]:
        yield f"  {each.file} {_WORDS[each.what]}{_fields(each)}"
    if len(drill.found.differences) > _FILES:
        yield f"  and {counted(len(drill.found.differences) - _FILES, 'more file')}"


def _fields(found: RecordDifference) -> str:
    if found.what != CHANGED:
        return ""
    if not found.fields:
        return ", though it says the same: it is not in the form that is written" if found.alike else ""
    return f": {', '.join(_cut(found.fields, _FIELDS))}"


def _time(drill: Drill) -> Iterator[str]:
    load, render = drill.found.seconds
    total = drill.cloning + load + render
    yield f"recovery time: {total:.1f} s (clone {drill.cloning:.1f}, load {load:.1f}, render and compare {render:.1f})"


def _point(point: RecoveryPoint) -> Iterator[str]:
    served = f"{point.served:.{_DIGITS}} of {clock.rfc3339(point.served_at)}"
    recorded = f"{point.status_branch} {point.recorded:.{_DIGITS}} of {clock.rfc3339(point.recorded_at)}"
    yield f"recovery point: commit {served}, as {recorded} has it"
    head = f"{point.head:.{_DIGITS}}"
    if point.left:
        yield f"  the branch is at {head}, which does not contain that commit: it was rewritten"
    elif point.behind:
        are = "is" if point.behind == 1 else "are"
        yield f"  {counted(point.behind, 'commit')} up to {head}, {_duration(point.late)} later, {are} not recorded"
    else:
        yield "  that is the head of the branch: no commit is behind it"
    if point.arriving:
        yield f"  {counted(point.arriving, 'commit')} of these {_were(point.arriving)} being loaded"


def _backup(drill: Drill) -> Iterator[str]:
    """What a backup adds."""
    unpushed, restored = drill.unpushed, drill.found.restored
    if restored:
        yield restored
    if unpushed is None:
        return
    if unpushed.why:
        yield f"of the backup does not come back what was not pushed: {unpushed.why}"
    elif unpushed.counts:
        yield (
            f"of the backup {counted(unpushed.more, 'status commit')} up to {unpushed.commit:.{_DIGITS}} that "
            f"{_were(unpushed.more)} not pushed {'comes' if unpushed.more == 1 else 'come'} back"
        )
    elif unpushed.commit:
        yield f"{drill.source} has what the backup has of the status branch, or something newer"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _beside(drill: Drill) -> Iterator[str]:
    found = drill.found
    yield "not in the repository:"
    for path, where in sorted(found.elsewhere.items()):
        yield f"  the content of workspace {path}, which comes from {where}: it is back once that is fetched"
    if found.unrecorded:
        more = ", beyond what the backup has" if found.restored else ""
        yield f"  what was made through the API in {_named(found.unrecorded)} (`writes: Store`){more}"
    yield "  Events, Leases and other runtime objects"
    for each in found.keys:
        yield f"  keys/{each.place}: {each.what}{_whose(each)}{_there(each)}"
    if not found.with_keys:
        yield "note: --keys DIR looks at the keys of the server, or a backup of them: Secrets of keys/ are missing here"
    if found.unchecked:
        yield "note: the fleet asks for signatures, which were not looked at: give --keys"


def _whose(found: NeededKey) -> str:
    return f" ({_named(found.of)})" if found.of else ""


def _there(found: NeededKey) -> str:
    return "" if found.there is None else "; there" if found.there else "; missing"


def _named(names: tuple[str, ...]) -> str:
    return ", ".join(_cut(names, _NAMES))


def _cut(lines: Iterable[str], most: int) -> list[str]:
    found = [*lines]
    return found if len(found) <= most else [*found[:most], f"and {len(found) - most} more"]


def _duration(seconds: int) -> str:
    for size, name in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def told(drill: Drill) -> Object:
    """As data; nothing is cut."""
    found, point = drill.found, drill.point
    load, render = found.seconds
    return {
        "source": drill.source,
        "same": drill.same,
        "differences": [{"file": d.file, "what": d.what, "fields": [*d.fields]} for d in found.differences],
        "notBroughtBack": [{"workspace": path, "errors": [*why]} for path, why in sorted(found.lost.items())],
        "workspaces": found.workspaces,
        "held": found.held,
        "recoveryTime": {
            "seconds": round(drill.cloning + load + render, 3),
            "clone": round(drill.cloning, 3),
            "load": round(load, 3),
            "render": round(render, 3),
        },
        "recoveryPoint": {
            "statusBranch": point.status_branch,
            "statusCommit": point.recorded,
            "recordedAt": clock.rfc3339(point.recorded_at),
            "servedCommit": str(point.served),
            "servedAt": clock.rfc3339(point.served_at),
            "head": point.head,
            "notRecorded": point.behind,
            "secondsBehind": point.late,
            "rewritten": point.left,
            "arriving": point.arriving,
        },
        "notInGit": {
            "writtenToTheStore": [*found.unrecorded],
            "inOtherRepositories": [{"workspace": p, "where": where} for p, where in sorted(found.elsewhere.items())],
            "keys": [{"place": k.place, "what": k.what, "of": [*k.of], "there": k.there} for k in found.keys],
        },
        "backup": _of_backup(drill),
        "signaturesChecked": not found.unchecked,
        "signedByServer": found.ours,
    }


def _of_backup(drill: Drill) -> Object | None:
    unpushed = drill.unpushed or Unpushed()
    if drill.unpushed is None and not drill.found.restored:
        return None
    return {
        "store": drill.found.restored,
        "statusCommit": unpushed.commit,
        "comesBack": unpushed.counts,
        "statusCommits": unpushed.more,
        "notTaken": unpushed.why,
    }

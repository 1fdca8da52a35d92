"""What a status commit says of itself: which objects and workspaces it created, configured or deleted.

Called by the writer with the files that differ. A record is created, configured or deleted on the branch; what it is
the record of may have been there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconciler.repository.difference import FileChange
from reconciler.repository.messages import one_line
from reconciler.statusbranch import format

_LISTED = 50
_SUBJECT = 100


class Said(NamedTuple):
    """`verb`: created, configured or deleted. `what`: `deployments.apps default/web`, "" for the workspace itself.
    `where`: the workspace's path, "" for what belongs to none."""

    verb: str
    what: str
    where: str


def describe(changes: Iterable[FileChange], paths: Mapping[str, str]) -> tuple[str, list[str]]:
    """Subject and body. `paths`: the workspaces' paths by their directories on the branch, as far as they are known."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    first: list[Said] = []
    for change in changes:
        said = _said(change, paths)
        if said is not None:
            counts[said.verb, said.where, bool(said.what)] += 1
            if len(first) < _LISTED:
                first.append(said)
    total = counts.total()
    if total <= 1:
        return (_line(first[0]) if first else "Record the fleet"), []
    lines = [_line(each) for each in first]
    return _summed(counts), [*lines, *([f"and {total - _LISTED} more"] if total > _LISTED else [])]


def _summed(counts: Counter[tuple[str, str, bool]]) -> str:
    """Objects by what was done to them, or workspaces where nothing else is said; then where, as far as it fits."""
    only_workspaces = not any(is_object for _, _, is_object in counts)
    by_verb: Counter[str] = Counter()
    for (verb, _, is_object), number in counts.items():
        by_verb[verb] += number if is_object or only_workspaces else 0
    kind = "workspace" if only_workspaces else "object"
    parts = [
        f"{number} {kind}{'s' if number != 1 else ''} {verb}" for verb, number in sorted(by_verb.items()) if number
    ]
    places = sorted({where for _, where, _ in counts if where})
    if only_workspaces:
        return one_line(", ".join(parts) + f": {', '.join(places)}", _SUBJECT)
    where = f" in {places[0]}" if len(places) == 1 else f" in {len(places)} workspaces: {', '.join(places)}"
    return one_line(", ".join(parts) + (where if places else ""), _SUBJECT)


def _line(said: Said) -> str:
    if not said.what:
        return one_line(f"workspace {said.where} {said.verb}")
    return one_line(f"{said.what} {said.verb}" + (f" in {said.where}" if said.where else ""))


def _said(change: FileChange, paths: Mapping[str, str]) -> Said | None:
    verb = "created" if change.old is None else "deleted" if change.new is None else "configured"
    if change.path == format.FLEET:
        return None
    if change.path.startswith(f"{format.SCHEMAS}/"):
        return Said(verb, f"schema {change.path.rpartition('/')[2].removesuffix('.yaml')}", "")
    directory, what = _placed(change.path)
    return Said(verb, what, paths.get(directory) or ":".join(directory.split("/")[1:]))


def _placed(path: str) -> tuple[str, str]:
    """The workspace's directory, and `resource namespace/name` ("" for its summary)."""
    directory = format.workspace_of(path)
    _, _, rest = path.removeprefix(f"{directory}/").partition("/")
    if not rest:
        return directory, ""
    namespace, resource, name = rest.split("/", 2)
    name = name.removesuffix(".yaml")
    return directory, f"{resource} {name}" if namespace == "_" else f"{resource} {namespace}/{name}"

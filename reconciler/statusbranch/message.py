"""What a status commit says of itself: which objects and workspaces it created, configured or deleted.

Called by the writer with the files that differ. A record is created, configured or deleted on the branch; what it is
the record of may have been there before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from reconciler.repository.difference import FileChange
from reconciler.repository.messages import one_line
from reconciler.statusbranch import format

_LISTED = 50
_SUBJECT = 100


class Paths(Protocol):
    def get(self, folder: str, /) -> str | None:
        """The path of the workspace whose folder on the branch that is, as far as it is known."""


class Said(NamedTuple):
    """`verb`: created, configured or deleted. `what`: `deployments.apps default/web`, "" for the workspace itself.
    `where`: the workspace's path, "" for what belongs to none."""

    verb: str
    what: str
    where: str


class _Counted:
    """What is kept of many: how many there are of each sort, and the first by name. Files of a workspace come one after
    the other."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.counts: Counter[tuple[str, bool]] = Counter()
        self.first: list[Said] = []
        self.places: dict[str, str] = {}
        self.workspaces = 0
        self._folder = ""

    def add(self, change: FileChange) -> None:
        if change.path == format.FLEET:
            return
        verb = "created" if change.old is None else "deleted" if change.new is None else "configured"
        schema = change.path.startswith(f"{format.SCHEMAS}/")
        folder, what = ("", _schema(change.path)) if schema else _placed(change.path)
        if folder and folder != self._folder:
            self._folder = folder
            self.workspaces += 1
            if len(self.places) < _LISTED:
                self.places[folder] = self._path(folder)
        self.counts[verb, bool(what)] += 1
        if len(self.first) < _LISTED:
            self.first.append(Said(verb, what, self.places.get(folder) or self._path(folder) if folder else ""))

    def _path(self, folder: str) -> str:
        return self._paths.get(folder) or ":".join(folder.split("/")[1:])


def describe(changes: Iterable[FileChange], paths: Paths) -> tuple[str, list[str]]:
    """Subject and body. `changes` by path, as git has them."""
    counted = _Counted(paths)
    for change in changes:
        counted.add(change)
    total = counted.counts.total()
    if total <= 1:
        return (_line(counted.first[0]) if counted.first else "Record the fleet"), []
    lines = [_line(each) for each in counted.first]
    return _summed(counted), [*lines, *([f"and {total - _LISTED} more"] if total > _LISTED else [])]


def _summed(counted: _Counted) -> str:
    """Objects by what was done to them, or workspaces where nothing else is said; then where, as far as it fits."""
    only_workspaces = not any(is_object for _, is_object in counted.counts)
    by_verb: Counter[str] = Counter()
    for (verb, is_object), number in counted.counts.items():
        by_verb[verb] += number if is_object or only_workspaces else 0
    kind = "workspace" if only_workspaces else "object"
    parts = [
        f"{number} {kind}{'s' if number != 1 else ''} {verb}" for verb, number in sorted(by_verb.items()) if number
    ]
    places = sorted(counted.places.values())
    if only_workspaces:
        return one_line(", ".join(parts) + f": {', '.join(places)}", _SUBJECT)
    where = f" in {places[0]}" if len(places) == 1 else f" in {counted.workspaces} workspaces: {', '.join(places)}"
    return one_line(", ".join(parts) + (where if places else ""), _SUBJECT)


def _line(said: Said) -> str:
    if not said.what:
        return one_line(f"workspace {said.where} {said.verb}")
    return one_line(f"{said.what} {said.verb}" + (f" in {said.where}" if said.where else ""))


def _schema(path: str) -> str:
    return f"schema {path.split('/')[2]}"


def _placed(path: str) -> tuple[str, str]:
    """The workspace's directory, and `resource namespace/name` ("" for its summary)."""
    directory = format.workspace_of(path)
    _, _, rest = path.removeprefix(f"{directory}/").partition("/")
    if not rest:
        return directory, ""
    namespace, resource, name = rest.split("/", 2)
    name = name.removesuffix(".yaml")
    return directory, f"{resource} {name}" if namespace == "_" else f"{resource} {namespace}/{name}"

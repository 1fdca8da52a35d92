"""What was done to a workspace without a right, as its summary keeps it while the workspace is held for it: pure.

Either files of it were touched, or an object of it would take something of another workspace (registry/reliance).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from apiserver.registry.reliance import Named
from reconciler.layout.errors import LayoutError

FIELD = "trespasses"
"""Of a summary."""
_SAID = ("commit", "file", "message", "hint", "asks")


class Relying(NamedTuple):
    """What an object takes: the object as `<storage name of its kind>/<name>`."""

    object: str
    named: Named


@dataclass(frozen=True, slots=True)
class Trespass:
    """`commit` did it, its text; `file`: the first that it touched; `message`, `hint`: in words. `asks`: the workspace
    in which, or above which, one has to be allowed to push. `takes`: where it is no file that was touched; then whoever
    may take that allows it."""

    commit: str
    file: str
    message: str
    hint: str
    asks: str
    takes: Relying | None = None

    @property
    def error(self) -> LayoutError:
        return LayoutError(self.file, 0, 0, self.message, self.hint)

    @property
    def name(self) -> str:
        """Tells it from all others of its workspace."""
        return " ".join((self.commit, self.takes.object, *self.takes.named)) if self.takes else self.commit

    def as_json(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in _SAID}
        return {**said, "takes": [self.takes.object, *self.takes.named]} if self.takes else said

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Trespass:
        """Raises KeyError or ValueError."""
        takes = None
        if found.get("takes"):
            obj, resource, path, name = map(str, found["takes"])
            takes = Relying(obj, Named(resource, path, name))
        commit, file, message, hint, asks = (str(found[name]) for name in _SAID)
        return Trespass(commit, file, message, hint, asks, takes)


class Trespasses:
    """Of one workspace, the oldest first; of what one commit touched one, and one for each thing that it takes."""

    def __init__(self, found: Iterable[Trespass] = ()) -> None:
        self._found = {each.name: each for each in found}

    def __iter__(self) -> Iterator[Trespass]:
        return iter(self._found.values())

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def of_files(self) -> Trespasses:
        """What was touched, without what is taken."""
        return Trespasses(each for each in self if each.takes is None)

    def without(self, names: Container[str]) -> Trespasses:
        return Trespasses(each for each in self if each.name not in names)

    def also(self, more: Iterable[Trespass]) -> Trespasses:
        return Trespasses([*self, *more])

    def as_json(self) -> list[dict[str, Any]]:
        return [each.as_json() for each in self]

    @staticmethod
    def of(found: Iterable[Mapping[str, Any]]) -> Trespasses:
        """Of what `as_json` says. Raises KeyError or ValueError."""
        return Trespasses(map(Trespass.from_json, found))

    @staticmethod
    def in_summary(summary: Mapping[str, Any]) -> Trespasses:
        return Trespasses.of(summary.get(FIELD) or ())

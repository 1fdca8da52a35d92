"""What was touched of a workspace without a right, as its summary keeps it while the workspace is held for it: pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.layout.errors import LayoutError

FIELD = "trespasses"
"""Of a summary."""


@dataclass(frozen=True, slots=True)
class Trespass:
    """`commit` did it, its text; `file`: the first that it touched; `message`, `hint`: in words. `asks`: the workspace
    in which, or above which, one has to be allowed to push."""

    commit: str
    file: str
    message: str
    hint: str
    asks: str

    @property
    def error(self) -> LayoutError:
        return LayoutError(self.file, 0, 0, self.message, self.hint)

    def as_json(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in ("commit", "file", "message", "hint", "asks")}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Trespass:
        """Raises KeyError."""
        return Trespass(*(str(found[name]) for name in ("commit", "file", "message", "hint", "asks")))


class Trespasses:
    """Of one workspace, the oldest first, one a commit."""

    def __init__(self, found: Iterable[Trespass] = ()) -> None:
        self._found = {each.commit: each for each in found}

    def __iter__(self) -> Iterator[Trespass]:
        return iter(self._found.values())

    def __bool__(self) -> bool:
        return bool(self._found)

    def without(self, commits: Container[str]) -> Trespasses:
        return Trespasses(each for each in self if each.commit not in commits)

    def also(self, trespass: Trespass | None) -> Trespasses:
        return Trespasses([*self, trespass]) if trespass is not None else self

    def as_json(self) -> list[dict[str, str]]:
        return [each.as_json() for each in self]

    @staticmethod
    def of(found: Iterable[Mapping[str, Any]]) -> Trespasses:
        """Of what `as_json` says. Raises KeyError."""
        return Trespasses(map(Trespass.from_json, found))

    @staticmethod
    def in_summary(summary: Mapping[str, Any]) -> Trespasses:
        return Trespasses.of(summary.get(FIELD) or ())

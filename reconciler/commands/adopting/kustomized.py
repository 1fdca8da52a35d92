"""What kustomizations name: bases beside them, files with objects, and what nobody here would fetch.

Called by grouping and inquiry. A kustomization is read, and never run.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import normpath
from typing import Any, NamedTuple

from reconciler.commands.adopting.lookedat import LookedAt, within
from reconciler.layout.errors import BadFile
from reconciler.layout.level import RENDERED_BY
from reconciler.layout.yamldoc import parse

CHART = RENDERED_BY[-1]
_KUSTOMIZATIONS = RENDERED_BY[:-1]
_RESOURCES = ("resources", "bases", "components")
_OTHERS = ("generators", "transformers", "validators", "configurations", "crds")
_MOST = 200_000
"""Directories that are come to, from all kustomizations together."""
_FETCHED = ("helmCharts", "helmChartInflationGenerator")


class Reached(NamedTuple):
    """All that one kustomization is made of. `directories`: its own, and those with kustomizations that it names by way
    of others; `files`: what is named as resources, each with the namespace that it is put in, "" where it says so
    itself. `fault`: why it cannot be rendered here, "" where nothing is known."""

    directories: frozenset[str]
    files: frozenset[tuple[str, str]]
    fault: str = ""


class Kustomizations:
    """Of one directory that was looked at."""

    def __init__(self, looked: LookedAt) -> None:
        self._looked = looked
        self._said: dict[str, dict[str, Any] | str] = {}
        self._reached: dict[str, Reached] = {}
        self._steps = 0

    def marker(self, directory: str) -> str:
        """The file that makes a directory one that is rendered, "" where none does."""
        paths = (f"{directory}/{name}" if directory else name for name in RENDERED_BY)
        return next((path for path in paths if path in self._looked.files), "")

    def is_kustomized(self, directory: str) -> bool:
        return self.marker(directory).rpartition("/")[2] in _KUSTOMIZATIONS

    def reached(self, directory: str) -> Reached:
        """What the kustomization of a directory is made of."""
        if directory not in self._reached:
            self._reached[directory] = self._followed(directory)
        return self._reached[directory]

    def _followed(self, directory: str) -> Reached:
        seen: set[tuple[str, str]] = set()
        files: set[tuple[str, str]] = set()
        fault, todo = "", [(directory, "")]
        while todo:
            here, around = todo.pop()
            if (here, around) in seen:
                continue
            seen.add((here, around))
            self._steps += 1
            said = self._read(here) if self._steps <= _MOST else "its kustomizations name too many others"
            if isinstance(said, str):
                fault = fault or said
                continue
            fault = fault or _fetched(said)
            own = said.get("namespace")
            namespace = around or (own if isinstance(own, str) else "")
            for entry, what in self._named(here, said):
                if what == "directory":
                    todo.append((entry, namespace))
                elif what == "file":
                    files.add((entry, namespace))
                elif what != "setting":
                    fault = fault or what
        return Reached(frozenset(each for each, _ in seen), frozenset(files), fault)

    def bases(self, directory: str) -> frozenset[str]:
        """The directories outside of it that it is made of."""
        return frozenset(each for each in self.reached(directory).directories if not within(each, directory))

    def _read(self, directory: str) -> dict[str, Any] | str:
        """What a kustomization says, or why it says nothing."""
        if directory not in self._said:
            self._said[directory] = self._parsed(directory)
        return self._said[directory]

    def _parsed(self, directory: str) -> dict[str, Any] | str:
        path = self.marker(directory)
        if not self.is_kustomized(directory):
            return f"{directory or '.'} is named as a base and has no kustomization.yaml"
        try:
            documents = parse(self._looked.files[path], path)
        except BadFile as bad:
            return str(bad.errors[0])
        return documents[0].value if documents else f"{path} says nothing"

    def _named(self, directory: str, said: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """A path, and "directory", "file", "setting" of one that holds no object, or what is wrong with it."""
        for key in (*_RESOURCES, *_OTHERS):
            entries = said.get(key)
            for entry in entries if isinstance(entries, list) else ():
                if not isinstance(entry, str) or "\n" in entry:
                    continue
                path = normpath(f"{directory or '.'}/{entry}")
                path = "" if path == "." else path
                if path in self._looked.directories:
                    yield path, "directory"
                elif path in self._looked.files:
                    yield path, "file" if key in _RESOURCES else "setting"
                elif _is_remote(entry):
                    yield "", f"its kustomization would have to fetch {_brief(entry)}: commit a copy, and name that"
                else:
                    yield "", f"its kustomization names {_brief(entry)}, which is not in the directory, or not taken"


def _fetched(said: dict[str, Any]) -> str:
    key = next((key for key in _FETCHED if said.get(key)), "")
    return f"{key} of its kustomization would be fetched: put the chart itself there (docs/rendering.md)" if key else ""


def _is_remote(entry: str) -> bool:
    return "://" in entry or "?ref=" in entry or entry.startswith(("github.com/", "git@"))


def _brief(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"

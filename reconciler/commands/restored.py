"""What `treeplane restore` did, or would do, as it is told. Texts of files and names are whoever's who may push."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from reconciler.loading.changeset import ChangeKind
from reconciler.repository.difference import FileChange
from reconciler.review.restoration import Restoration
from reconciler.review.result import ChangeReview
from reconciler.review.telling import structured, text
from reconciler.review.telling.harmless import plain, quoted
from reconciler.review.telling.words import cut

DIFFERENT, HELD = 1, 3
"""Exit codes: something would be another, and nothing was committed; something of it would be held."""
_DIGITS, _FILES = 10, 100


class RestoreDone(NamedTuple):
    """`at`: the commit that was gone back to. `review`: what the commit does, None where there is nothing to commit.
    `commit`: the one that was made, "" where none was. `dry`: none was asked for."""

    found: Restoration
    at: str
    review: ChangeReview | None
    commit: str = ""
    dry: bool = False
    notes: tuple[str, ...] = ()

    @property
    def change(self) -> ChangeKind:
        """What becomes of the workspace."""
        if self.review is None:
            return ChangeKind.UNCHANGED
        if self.review.holds:
            return ChangeKind.HELD
        return ChangeKind.CREATED if self.found.comes_back else ChangeKind.CONFIGURED

    @property
    def exit_code(self) -> int:
        if self.change is ChangeKind.HELD:
            return HELD
        return DIFFERENT if self.review is not None and not self.commit else 0

    def render(self, output: str) -> str:
        """`text`, `json` or `yaml`."""
        if output == "text":
            return "".join(f"{line}\n" for line in self._lines())
        if output == "json":
            return quoted(json.dumps(self._told(), indent=2), "\\u%04x") + "\n"
        return quoted(yaml.safe_dump(self._told(), sort_keys=False, width=10**9), "\\x%02x")

    def _lines(self) -> Iterator[str]:
        found = self.found
        would = "would be held" if self.change is ChangeKind.HELD else f"is {self.change.value}"
        would = f"would be {self.change.value}" if self.dry else would
        yield plain(f"{found.path} {would}: as commit {self.at:.{_DIGITS}} has it")
        if self.review is not None:
            yield from cut((plain(f"  {_file(each)}") for each in found.made.files), _FILES, "files")
            yield from text.told(self.review).splitlines()
        for path, why in sorted(found.made.left.items()):
            yield plain(f"{path} does not come back: {why}")
        yield from (plain(f"note: {note}") for note in self.notes)
        yield from self._end()

    def _end(self) -> Iterator[str]:
        if self.commit:
            yield f"commit {self.commit:.{_DIGITS}} says so: git push"
            return
        yield "nothing to commit" if self.review is None else "nothing was committed"
        if self.hashes:
            yield f"to commit it with these deletions: --allow-delete {' --allow-delete '.join(self.hashes)}"

    @property
    def hashes(self) -> list[str]:
        """Of the deletions that have to be allowed."""
        return sorted({each.digest for each in self.review.refused.values()}) if self.review is not None else []

    def _told(self) -> dict[str, Any]:
        found = self.found
        return {
            "workspace": found.path,
            "directory": found.directory,
            "at": self.at,
            "was": {"workspace": found.was.path, "directory": found.was.directory},
            "change": self.change.value,
            "commit": self.commit,
            "allowDelete": self.hashes,
            "files": [{"file": each.path, "change": _change(each).value} for each in found.made.files],
            "left": [{"file": path, "why": why} for path, why in sorted(found.made.left.items())],
            "notes": [*self.notes],
            "review": structured.told(self.review) if self.review is not None else None,
        }


def _file(change: FileChange) -> str:
    return f"{change.path} {_change(change).value}"


def _change(change: FileChange) -> ChangeKind:
    if change.old is None:
        return ChangeKind.CREATED
    return ChangeKind.DELETED if change.new is None else ChangeKind.CONFIGURED

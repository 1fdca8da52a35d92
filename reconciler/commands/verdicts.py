"""What became of a commit, in the words of a terminal: for who pushed it, and for `treeplane validate`.

Of a push to the repository that the server hosts, git's hook (apiserver/endpoints/githooks) prints what stands in the
file that is written here for the branch's new head.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from apiserver.endpoints.githooks import VERDICTS
from reconciler.loading.changeset import ChangeKind, together
from reconciler.loading.loader import Loaded
from reconciler.loading.renames import REMEDY
from reconciler.plan.deletions import RefusedDeletion, command
from reconciler.repository.messages import one_line

log = logging.getLogger(__name__)

_MOST = 100
"""Files that are kept, and lines of a kind that are printed."""
_WIDTH = 2000


class Verdicts:
    """Of the repository that the server hosts, None where it hosts none. From `begin` to `end` who pushes waits a
    moment for them."""

    def __init__(self, git_dir: Path | None) -> None:
        self._directory = git_dir / VERDICTS if git_dir is not None else None
        self._written: list[Path] = []

    def begin(self) -> None:
        self.end()
        if self._directory is not None:
            self._directory.mkdir(parents=True)

    def end(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def say(self, loaded: Loaded) -> None:
        if self._directory is None:
            return
        file = self._directory / loaded.head.id
        try:
            new = file.with_suffix(".new")
            new.write_text("".join(f"{line}\n" for line in told(loaded)))
            new.replace(file)
            self._written.append(file)
            while len(self._written) > _MOST:
                self._written.pop(0).unlink(missing_ok=True)
        except OSError as error:
            log.warning("who pushed is not told what became of it: %s", error)


def told(loaded: Loaded) -> Iterator[str]:
    """What a load made of a head."""
    changes = together(loaded.steps)
    held, refused = changes.held, changes.refused
    if loaded.problems:
        yield f"commit {loaded.head:.10} is not served:"
        yield from _listed(str(problem) for problem in loaded.problems)
        return
    counts = changes.told(ChangeKind.CREATED, ChangeKind.CONFIGURED, ChangeKind.MOVED, ChangeKind.DELETED)
    yield f"commit {loaded.head:.10} {_how_far(loaded, bool(changes.judged))}" + (f": {counts}" if counts else "")
    if held:
        yield f"{len(held)} workspace{'s are' if len(held) > 1 else ' is'} held back, and served as before:"
        listed = [(path, problem) for path, problems in held.items() for problem in problems]
        told_below = [str(each) for each in refused.values()]
        yield from _listed(f"{path}: {p}" for path, p in listed if not any(text in p.message for text in told_below))
    yield from moves(changes.moves, changes.renames)
    yield from deletions(refused)


def _how_far(loaded: Loaded, some: bool) -> str:
    """`some`: whether some workspaces are there."""
    if not loaded.waits_for:
        return "is served"
    waits = f"waits for commit {loaded.waits_for:.10}, which is being loaded"
    return f"is served in part, the rest of it {waits}" if some else waits


def moves(moved: Mapping[str, str], renamed: Mapping[str, str]) -> Iterator[str]:
    """Which workspaces move, and which would if somebody said so."""
    lines = [f"{old} moves to {new}" for old, new in sorted(moved.items())]
    lines += [f"{old} does not move to {new}: {REMEDY}" for old, new in sorted(renamed.items())]
    yield from _listed(lines, "")


def deletions(refused: Mapping[str, RefusedDeletion]) -> Iterator[str]:
    """What would be deleted, line by line, and the one command that allows all of it."""
    for path, each in sorted(refused.items()):
        yield f"{path}: {each.why}; this would be deleted:"
        yield from _listed(each.lines())
    if refused:
        yield "To delete all of this, push:"
        yield f"  {command(sorted({each.digest for each in refused.values()}))}"


def _listed(lines: Iterable[str], indent: str = "  ") -> Iterator[str]:
    found = list(lines)
    yield from (f"{indent}{one_line(line, _WIDTH)}" for line in found[:_MOST])
    if len(found) > _MOST:
        yield f"{indent}and {len(found) - _MOST} more"

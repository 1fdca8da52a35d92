"""What became of a commit, or would, in the words of a terminal: by workspace, with file, line and what to do where one
is held.

Called for the answer to a push (verdicts, pushes, hook) and by `treeplane validate`. What it tells is a stranger's
text, so each line is made harmless here, and there are never more lines than somebody reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from apiserver.model.counts import counted
from reconciler.layout.errors import LayoutError
from reconciler.loading.changeset import ChangeKind, ChangeSet, together
from reconciler.loading.consequences import told_once, waiting_lines
from reconciler.loading.loader import Loaded
from reconciler.loading.renames import REMEDY
from reconciler.loading.trial import Tried
from reconciler.plan.deletions import RefusedDeletion, command
from reconciler.plan.pushedby import NOBODY, PushedBy
from reconciler.review.telling.harmless import plain

_MOST = 100
"""Lines of a kind that are printed."""
_REFUSED = 10
"""Deletions that are listed object by object."""
_WIDTH = 2000
_TOLD = (ChangeKind.CREATED, ChangeKind.CONFIGURED, ChangeKind.DELETED)
_STAYS = "What is held stays as it was served: mend it, and push again."


class Unserved(NamedTuple):
    """What of the branch's head is not served, besides what a load says of it. `held`: how many workspaces are that
    earlier commits had held; `pinned`: of those that were looked at, by path, whereto in words."""

    held: int = 0
    pinned: Mapping[str, str] = MappingProxyType({})


def told(loaded: Loaded, by: PushedBy = NOBODY, unserved: Unserved = Unserved()) -> Iterator[str]:  # noqa: B008
    """What a load made of a head, and who is known to have pushed it."""
    if loaded.problems:
        yield f"commit {loaded.head:.10} is not served:"
        yield from _listed(dict.fromkeys(map(str, loaded.problems)))
        yield from _pushed(by)
        return
    changes = together(loaded.steps)
    counts = changes.told(*ChangeKind)
    yield f"commit {loaded.head:.10} {_how_far(loaded, changes, unserved)}" + (f": {counts}" if counts else "")
    yield from _pushed(by)
    yield from workspaces(changes)
    texts = {path: [*map(str, errors)] for path, errors in changes.held.items()}
    yield from held(texts, changes.held, changes.refused)
    if changes.held.keys() - changes.refused.keys():
        yield _STAYS
    yield from moves({}, changes.renames)
    yield from deletions(changes.refused)
    yield from _beside(unserved)


def _beside(unserved: Unserved) -> Iterator[str]:
    yield from _listed(
        (
            f"workspace {path} stays pinned {whereto}: what else the commit has of its own content is not served"
            for path, whereto in sorted(unserved.pinned.items())
        ),
        "",
    )
    if unserved.held:
        some = counted(unserved.held, "workspace stays", "workspaces stay")
        yield f"{some} held as before: `treeplane status` says why"


def _pushed(by: PushedBy) -> Iterator[str]:
    if by:
        yield harmless(f"pushed by {by}")


def barred(errors: Sequence[LayoutError]) -> Iterator[str]:
    """Why a push is refused that whoever pushes may not make, and what to do."""
    yield "refused, since it may not be made so, as the served treeplane.yaml says:"
    yield from _listed(dict.fromkeys(map(str, errors)))
    yield "Nothing of it is taken."


def refusal(found: Tried) -> Iterator[str]:
    """Why a push is refused, and what to do."""
    yield f"refused, since {_loss(found)} (spec.push of the served treeplane.yaml is Refuse):"
    yield from _losses(found)
    yield "Nothing of it is taken: mend it, and push again."


def foretold(commit: str, found: Tried) -> Iterator[str]:
    """What a push will come to that is taken, whoever is held for it."""
    counts = found.changes.told(*ChangeKind)
    yield f"commit {commit:.10} is taken" + (f", which will come to: {counts}" if counts else "")
    yield from workspaces(found.changes)
    if found.holds:
        yield f"It is taken although {_loss(found)}:"
        yield from _losses(found)


def _loss(found: Tried) -> str:
    if found.problems:
        return "nothing of it could be served"
    return f"it would hold {counted(len(found.held), 'workspace')}"


def _losses(found: Tried) -> Iterator[str]:
    yield from _listed(dict.fromkeys(found.problems))
    refused = {path: each for path, each in found.changes.refused.items() if path in found.held}
    yield from held(found.held, found.changes.held, refused)
    yield from moves({}, found.changes.renames)
    yield from deletions(refused)


def workspaces(changes: ChangeSet) -> Iterator[str]:
    """What becomes of those that are another then, one a line."""
    yield from _listed(_workspaces(changes), "")


def held(
    texts: Mapping[str, Sequence[str]],
    judged: Mapping[str, Sequence[LayoutError]],
    refused: Mapping[str, RefusedDeletion],
) -> Iterator[str]:
    """Who is held, and why (`texts`). `judged`: the same errors and others, as they were found: what only follows from
    a mistake that is told here is a number. `refused`: deletions, which are told by themselves."""
    once = told_once({path: errors for path, errors in judged.items() if path in texts})
    errors = _without(texts, {str(each) for each in once.consequences(judged)})
    told_below, left = [str(each) for each in refused.values()], _MOST
    for path, problems in islice(sorted(errors.items()), _MOST):
        yield harmless(f"workspace {path} held:")
        shown = [each for each in problems if not any(text in each for text in told_below)]
        yield from _listed(shown, most=left)
        left = max(0, left - len(shown))
        if len(shown) < len(problems):
            yield "  what it deletes has to be allowed first"
    if len(errors) > _MOST:
        yield f"and {counted(len(errors) - _MOST, 'more workspace')} held"
    yield from _listed(waiting_lines(once.waiting), "")


def _without(texts: Mapping[str, Sequence[str]], gone: Collection[str]) -> dict[str, list[str]]:
    left = {path: [each for each in errors if each not in gone] for path, errors in texts.items()}
    return {path: errors for path, errors in left.items() if errors}


def moves(moved: Mapping[str, str], renamed: Mapping[str, str]) -> Iterator[str]:
    """Which workspaces move, and which would if somebody said so."""
    lines = [f"{old} moves to {new}" for old, new in sorted(moved.items())]
    lines += [f"{old} does not move to {new}: {REMEDY}" for old, new in sorted(renamed.items())]
    yield from _listed(lines, "")


def deletions(refused: Mapping[str, RefusedDeletion]) -> Iterator[str]:
    """What would be deleted, line by line, and the one command that allows all of it."""
    for path, each in islice(sorted(refused.items()), _REFUSED):
        yield harmless(f"{path}: {each.why}; this would be deleted:")
        yield from _listed(each.lines())
    if len(refused) > _REFUSED:
        yield f"and {len(refused) - _REFUSED} more like these"
    if refused:
        yield "To delete all of this, push:"
        yield f"  {command(sorted({each.digest for each in refused.values()}))}"


def _workspaces(changes: ChangeSet) -> Iterator[str]:
    for path, became in sorted(changes.became.items()):
        if became in _TOLD and path not in changes.held:
            number = changes.numbers.get(path, 0) if became is not ChangeKind.DELETED else 0
            objects = f" ({counted(number, 'object')})" if number > 0 else ""
            yield f"workspace {path} {became}{objects}"
    for old, new in sorted(changes.moves.items()):
        yield f"workspace {old} moved to {new}"


def _how_far(loaded: Loaded, changes: ChangeSet, unserved: Unserved) -> str:
    if not loaded.waits_for:
        return "is served in part" if changes.held or unserved.held else "is served"
    waits = f"waits for commit {loaded.waits_for:.10}, which is being loaded"
    return f"is served in part, the rest of it {waits}" if changes.judged else waits


def _listed(lines: Iterable[str], indent: str = "  ", most: int = _MOST) -> Iterator[str]:
    found = list(lines)
    yield from (f"{indent}{harmless(line)}" for line in found[:most])
    if len(found) > most:
        yield f"{indent}and {len(found) - most} more"


def harmless(text: str) -> str:
    """One line that does nothing in a terminal, whoever wrote what it says."""
    return plain(text, _WIDTH)

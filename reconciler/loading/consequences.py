"""What follows from a mistake in another workspace: a type, or a kind, that is not there since who declares it is held.

Asked by workspacetype and phases.kinds where something is missing, and by whoever tells what is held (commands/answers,
`validate`, review), so that one mistake is one error however many wait for it. What a held workspace would provide its
files tell (offers), at the cost of reading that one: a name that is not there either is a mistake of who asks for it.

The condition of a workspace that waits names the other by its path, which its own files name or which stands above it.
In which file and line the mistake is says the other's own condition, to those who may read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from apiserver.model.counts import counted, some_of
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacetypes import TypeRef
from reconciler.layout.errors import LayoutError
from reconciler.loading.offers import Object, Offers

_NAMED = 3


class KnowsProviders(Protocol):
    """The rest of the fleet (world.World)."""

    def record(self, path: str, /) -> WorkspaceRecord | None: ...

    def find_type(self, path: str, name: str, /) -> Object | None: ...

    def files_of(self, path: str, /) -> Offers:
        """What a workspace provides as its manifests say, whatever became of them."""


def type_in(world: KnowsProviders, refs: Iterable[TypeRef]) -> str:
    """The first workspace that is held and whose files say another of these types than there is, or may; "" if none
    does."""
    return next((ref.path for ref in refs if _is_held(world, ref.path) and _differs(world, ref)), "")


def _differs(world: KnowsProviders, ref: TypeRef) -> bool:
    return world.files_of(ref.path).says_otherwise(ref.name, world.find_type(ref.path, ref.name))


def kind_in(world: KnowsProviders, providers: Iterable[str], group: str, kind: str) -> str:
    """The first of these workspaces that is held and whose files say a kind, or may; "" if none does."""
    return next((path for path in providers if world.files_of(path).says_kind(group, kind)), "")


def held_among(world: KnowsProviders, paths: Iterable[str]) -> list[str]:
    return [path for path in paths if _is_held(world, path)]


def _is_held(world: KnowsProviders, path: str) -> bool:
    record = world.record(path)
    return record is not None and bool(record.errors)


def held_there(path: str) -> str:
    """As the end of a message, and what to do."""
    return f", while workspace {path} is held"


def remedy(path: str) -> str:
    return f"it waits until workspace {path} is mended, whose own condition says what is wrong"


class ToldOnce(NamedTuple):
    """`mistakes`: by workspace, what is to be mended there. `waiting`: by the workspace with the mistake, who waits for
    it."""

    mistakes: dict[str, list[LayoutError]]
    waiting: dict[str, list[str]]

    def consequences(self, held: Mapping[str, Sequence[LayoutError]]) -> set[LayoutError]:
        """Of the errors of those that are held: what is no mistake."""
        waiting = {path for those in self.waiting.values() for path in those}
        mistakes = {each for errors in self.mistakes.values() for each in errors}
        return {each for path in waiting for each in held[path] if each.waits_for} - mistakes


def told_once(held: Mapping[str, Sequence[LayoutError]]) -> ToldOnce:
    """Of workspaces that are held: what follows from a mistake which is told here, too, is a number there."""
    out = ToldOnce({}, {})
    for path, errors in held.items():
        causes = {each: _cause(held, path, each) for each in errors}
        own = [each for each, cause in causes.items() if not cause]
        if own:
            out.mistakes[path] = own
        for cause in sorted({*causes.values()} - {""}):
            out.waiting.setdefault(cause, []).append(path)
    return out


def _cause(held: Mapping[str, Sequence[LayoutError]], path: str, error: LayoutError) -> str:
    """The workspace with the mistake that an error follows from in the end; "" if that is not among them."""
    seen = {path}
    at = error.waits_for
    while at in held and at not in seen:
        seen.add(at)
        if any(not each.waits_for for each in held[at]):
            return at
        at = held[at][0].waits_for
    return ""


def waiting_lines(waiting: Mapping[str, Sequence[str]]) -> list[str]:
    """ToldOnce.waiting in words."""
    return [_line(path, found) for path, found in sorted(waiting.items())]


def _line(cause: str, waiting: Sequence[str]) -> str:
    some = counted(len(waiting), "workspace waits", "workspaces wait")
    return f"{some} for workspace {cause}, which is held: {some_of(sorted(waiting), _NAMED)}"

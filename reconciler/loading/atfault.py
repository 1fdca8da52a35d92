"""Which of the writes in a commit have it held, as far as the errors tell.

Called by the committer with what judging the commit came to. An error that names the file of a write is that write's;
where none does, it may be any in that workspace, or, if the commit has none there, any at all. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.model.errors import Cause, StatusError, invalid
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.layout.errors import LayoutError
from reconciler.loading.loader import Proposal

FAULT = StatusError(500, "InternalError", "the write failed in Treeplane: see its log")


@dataclass(frozen=True, slots=True)
class AtFault:
    """`guilty`: with what to answer; `suspects`: those among which it cannot be told."""

    guilty: dict[Key, StatusError] = field(default_factory=dict)
    suspects: dict[Key, Intent] = field(default_factory=dict)


def at_fault(
    proposal: Proposal, writes: Sequence[Intent], files: Mapping[Key, str], path_of: Callable[[str], str]
) -> AtFault:
    """`files`: that of each write; `path_of`: the path of a logical cluster. There is at least one, where anything is
    held."""
    found = AtFault()
    for path, problems in proposal.held.items():
        mine = [i for i in writes if path_of(i.key.cluster) == path] or writes
        named = [i for i in mine if any(p.path == files[i.key] for p in problems)]
        if not named and len(mine) > 1:
            found.suspects.update((i.key, i) for i in mine)
            continue
        for intent in named or mine:
            told = [p for p in problems if p.path == files[intent.key]] or problems
            found.guilty[intent.key] = FAULT if path in proposal.faults else _invalid(intent, told)
    for key in found.guilty:
        found.suspects.pop(key, None)
    return found


def _invalid(intent: Intent, problems: Iterable[LayoutError]) -> StatusError:
    resource, _, group = intent.key.resource.partition(":")[0].partition(".")
    causes = [Cause("FieldValueInvalid", str(p)) for p in problems]
    return invalid(resource, group, intent.key.name, causes)

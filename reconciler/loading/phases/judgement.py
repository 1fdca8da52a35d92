"""A judgement under way, and what a phase is.

A phase takes the judgement as the ones before left it and fills in its own part. It reads what it has to from the
judgement's grounds and writes nothing. The next phase in the list follows, unless it names another one to go on with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.registry.tree import WorkspaceRecord, summary
from apiserver.storage.protocol import Record, View
from reconciler.loading.case import Case, Verdict
from reconciler.loading.content import WorkspaceContent
from reconciler.loading.gather import Gathered
from reconciler.loading.guard import Guard
from reconciler.loading.newcomers import Newcomers
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.treeobjects import Look, TreeObjects
from reconciler.loading.workspacetype import Typed
from reconciler.loading.world import World
from reconciler.plan.deletions import RefusedDeletion
from reconciler.plan.summary import Summary


class Go(Enum):
    """Where a judgement goes on instead of with the next phase."""

    WHOLE = auto()
    """At the beginning of the list for a workspace of which all counts."""
    KINDS = auto()
    """At the phase that finds the kinds, with what it is to keep by now."""
    DONE = auto()
    """Nowhere: there is a verdict."""


Adopted = dict[str, str]
"""Path by UID."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the judgements of one step stand on. `store`: what they read; `guard` None: nothing is served yet that could
    be lost. `adopted`: of a fleet that is loaded for the first time, and of which nobody knows other UIDs, those that
    workspaces state; None of any other.
    """

    site: Site
    store: View
    world: World
    served: ServedTrees
    guard: Guard | None
    tree_objects: TreeObjects
    newcomers: Newcomers
    adopted: Adopted | None = None

    def stored(self, keys: list[Key]) -> dict[Key, Record]:
        """What the store holds of these."""
        return {k: r for k, r in zip(keys, self.store.get_many(keys), strict=True) if r is not None}


@dataclass(slots=True)
class Judgement:
    """Of one case. What has no default is filled in by the phases, in this order.

    `gathered`: its manifests; `typed`: its type; `record`: its record as it will be; `known`: its summary, completed on
    the way. `content`: what the manifests say; `keep`: bindings that are to keep what they are bound to, and `first`
    what the content was before that. `refused`: the deletion that has to be allowed. `look`: finds what the store
    holds of some objects, None where a workspace comes that nobody has heard of. `verdict`: how it ends.
    """

    case: Case
    grounds: Grounds
    gathered: Gathered = field(init=False)
    typed: Typed = field(init=False)
    record: WorkspaceRecord = field(init=False)
    known: Summary = field(init=False)
    content: WorkspaceContent = field(init=False)
    keep: frozenset[str] = frozenset()
    first: WorkspaceContent | None = None
    refused: RefusedDeletion | None = None
    look: Look | None = None
    verdict: Verdict = field(init=False)

    def stored(self, keys: list[Key]) -> dict[Key, Record]:
        return self.look(keys) if self.look is not None else {}


Phase = Callable[[Judgement], Go | None]


def known_of(grounds: Grounds, case: Case) -> Summary | None:
    """What is known of the case's workspace, a copy."""
    if case.recorded is not None:
        known = Summary.from_json(case.recorded.summary.as_json())
        known.at = NONE  # the store says by itself where a workspace is
        return known
    found = summary(grounds.store, case.record.path) if case.record is not None else {}
    return Summary.from_json(found) if found else None


def summary_of(grounds: Grounds, case: Case, record: WorkspaceRecord) -> Summary:
    """The same; one to begin with where nothing is."""
    known = known_of(grounds, case) or Summary(record.origin, record.commit or record.origin)
    known.appeared = known.appeared or (record.origin_time if record.origin.repository else 0)
    return known

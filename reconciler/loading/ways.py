"""The ways of working: which phases a workspace passes, and how what comes of it reaches the store.

Chosen by loader and firstload for a step; read by judge and steps. A way is the lists that stand here, and nothing that
a phase asks about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from apiserver.storage.protocol import Store
from reconciler.loading.case import Coming
from reconciler.loading.handover import Filling, Handover, KeepingBack
from reconciler.loading.phases.appearing import appear
from reconciler.loading.phases.asking import ask_for_losses, ask_owners, keep_promises
from reconciler.loading.phases.counting import leave_room
from reconciler.loading.phases.declaring import declare, declare_again
from reconciler.loading.phases.following import follow_providers
from reconciler.loading.phases.gathering import gather_all, gather_changed, look
from reconciler.loading.phases.holding import hold, hold_as_served, hold_away
from reconciler.loading.phases.identified import identify, identify_again
from reconciler.loading.phases.judgement import Phase
from reconciler.loading.phases.kinds import bring_kinds_back, find_kinds
from reconciler.loading.phases.merging import drop_likeness, merge, restore
from reconciler.loading.phases.mounting import find_mount
from reconciler.loading.phases.publishing import follow_on, publish
from reconciler.loading.phases.scheduling import find_shard
from reconciler.loading.phases.typed import bring_type_back, find_type
from reconciler.loading.renewal import Telling

Phases = tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """`name`: in words. `lists`: what a workspace passes, by how it comes to the step. `handover`: takes what comes of
    it. `hears`: whether what the commit allows lets workspaces go on that are held for it. `tells`: whether those who
    follow from what is written are judged again. `alone`: nobody else is judged but who is named. `fills`: the store
    holds no workspace."""

    name: str
    lists: Mapping[Coming, Phases]
    handover: Callable[[Store, Callable[[str], None]], Handover] = Handover
    hears: bool = True
    tells: bool = True
    alone: bool = False
    fills: bool = False

    def phases(self, coming: Coming) -> Phases:
        return self.lists[coming]


_FOUND: Phases = (find_type, identify, find_shard, find_mount, find_kinds, declare)
_NEW: Phases = (appear, gather_all, *_FOUND, leave_room, ask_owners, hold, merge, publish)
"""Nothing stands where it comes."""
_CHECKED: Phases = (leave_room, ask_owners, keep_promises, ask_for_losses, hold)
_JUDGED: Phases = (*_FOUND, *_CHECKED, merge, publish)
_CHANGED: Phases = (look, gather_changed, *_JUDGED)
_WHOLE: Phases = (look, gather_all, *_JUDGED)
_PROVIDED: Phases = (follow_providers, *_WHOLE)
_INTO_NOTHING: Phases = (
    gather_all,
    bring_type_back,
    identify_again,
    find_shard,
    find_mount,
    bring_kinds_back,
    declare_again,
    ask_owners,
    hold_away,
    restore,
    publish,
)
_RETURNING: Phases = (look, *_INTO_NOTHING)
_FOLLOWING: Phases = (*_RETURNING, follow_on)
"""It comes back while others follow the branch already."""

FIRST_LOAD = Way(
    "first load",
    {
        Coming.NEW: _NEW,
        Coming.CHANGED: _CHANGED,
        Coming.WHOLE: _WHOLE,
        Coming.PROVIDED: _PROVIDED,
        Coming.RETURNING: (appear, *_INTO_NOTHING),
        Coming.RETURNING_AGAIN: _RETURNING,
    },
    Filling,
    fills=True,
)
"""Into a store that holds nothing, from the status branch where it knows a workspace."""

RECOVERY = Way(
    "recovery",
    {
        Coming.NEW: _NEW,
        Coming.CHANGED: _CHANGED,
        Coming.WHOLE: _WHOLE,
        Coming.PROVIDED: _PROVIDED,
        Coming.RETURNING: _RETURNING,
        Coming.RETURNING_AGAIN: _RETURNING,
    },
)
"""The same beside what the store holds already."""

_ANEW = (*_INTO_NOTHING[:-1], drop_likeness, publish)

ANEW = Way("making anew", {**RECOVERY.lists, Coming.RETURNING: _ANEW, Coming.RETURNING_AGAIN: _ANEW}, tells=False)
"""In a recovery, of what the store holds a likeness of (see ahead)."""

COMMIT = Way(
    "commit",
    {
        Coming.NEW: _NEW,
        Coming.CHANGED: _CHANGED,
        Coming.WHOLE: _WHOLE,
        Coming.PROVIDED: _PROVIDED,
        Coming.RETURNING: _FOLLOWING,
        Coming.RETURNING_AGAIN: _FOLLOWING,
    },
)
"""From what is served to what a commit says. One that a recovery could not bring back comes back first."""

RECHECK = Way(
    "recheck",
    {
        coming: tuple(hold_as_served if phase is hold else phase for phase in phases)
        for coming, phases in COMMIT.lists.items()
    },
)
"""A commit that is served already, for what does not follow from it."""

RENEWAL = Way("renewal", COMMIT.lists, alone=True)
"""The same of one workspace that may have something which ships with another version (see renewal)."""

SHIPPING = Way("shipping", COMMIT.lists, Telling, alone=True, tells=False)
"""The same of one whose content ships."""

PROPOSAL = Way("proposal", COMMIT.lists, KeepingBack, hears=False)
"""A commit of ours, which says what it deletes of its own; nothing is written before it is the branch's."""

"""How a workspace says that its own content is pinned: served as an earlier commit has it, whatever came later.

Said in the condition CommitApplied, which is computed (reconciler/plan/computed), of what a record holds
(tree.WorkspaceRecord.pin); read where Workspaces are shown as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.model import commits, conditions

Object = dict[str, Any]

APPLIED = "CommitApplied"
PINNED = "Pinned"
"""Its reason where a pin counts, and nothing is wrong."""
HELD = "held back, and pinned"
"""How its message begins where something is."""
_DIGITS = 10


def told(pin: Mapping[str, str]) -> str:
    """A record's pin in words, to stand behind `pinned`: whereto, until when, by which file and why."""
    until = f" until {pin['until']}" if pin.get("until") else ""
    reason = f" ({pin['reason']})" if pin.get("reason") else ""
    return f"to {commits.shortened(pin['commit'], _DIGITS)}{until} by {pin['file']}{reason}"


def is_said(found: Iterable[Object] | None) -> bool:
    """Whether conditions say that a pin counts."""
    said = conditions.get(found, APPLIED) or {}
    return said.get("reason") == PINNED or str(said.get("message", "")).startswith(HELD)


def in_short(obj: Object) -> str | None:
    """Of a Workspace whose pin counts: the commit, and until when; None of any other."""
    said = (obj.get("spec") or {}).get("serve") or {}
    if not said or not is_said((obj.get("status") or {}).get("conditions")):
        return None
    short = commits.shortened(str(said["commit"]), _DIGITS)
    return f"{short} until {said['until']}" if said.get("until") else short

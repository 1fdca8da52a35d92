"""What `kubectl ws tree` says behind a workspace that is not as it should be: held, or not all on its sync target.

Called by tree. It is what the server's tables say in HELD, LAG and SYNCED, of the objects alone, in a few words.
"""

from __future__ import annotations

import re

from reconciler.plugin.client import Object

PLACEMENTS = "/apis/scheduling.kcp.io/v1alpha1/placements"
_WIDTH, _READ = 60, 1000
"""Characters that are shown of a text, and looked at."""
_HELD = re.compile(r"(?:held back at the last good commit|never had a good commit): ")
_FOLDERS = re.compile(r"^(?:[^\s:/]+/)+(?=[^\s:/]+:)")


def of_workspace(workspace: Object) -> str:
    """ "" of one that is where the branch is."""
    said = _condition(workspace, "CommitApplied")
    if said.get("status") != "False":
        return ""
    text = _HELD.sub("", (said.get("message") or "")[:_READ], count=1)
    text = _FOLDERS.sub("", text, count=1)
    lag = (workspace.get("status") or {}).get("lag")
    behind = f"{lag} commit{'s' if lag != 1 else ''} behind, " if isinstance(lag, int) else ""
    return f" [held: {behind}{_brief(text)}]"


def of_placement(placement: Object) -> str:
    """ "" of one of which all is on its sync target."""
    said = _condition(placement, "Synced")
    if said.get("status") != "False":
        return ""
    first, _, _ = (said.get("message") or "").partition("; ")
    name = placement["metadata"]["name"]
    return f" [not synced: {_brief(f'{name}: {first}')}]"


def _condition(obj: Object, kind: str) -> Object:
    found = (obj.get("status") or {}).get("conditions") or []
    return next((each for each in found if each.get("type") == kind), {})


def _brief(text: str) -> str:
    """On one line, with nothing that a terminal acts on."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _WIDTH]).split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1].rstrip()}…"

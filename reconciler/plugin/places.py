"""Which workspaces there are below one, as far as they may be listed: for who completes, picks, or mistyped a path."""

from __future__ import annotations

import re

from reconciler.plugin.meant import near
from reconciler.plugin.session import CLUSTERS, WORKSPACES, Session

_PAGE = 500
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
"""Anything else does not go to a shell or a terminal, whatever a server says."""


def children(session: Session, path: str) -> list[str]:
    """Names of the workspaces right below `path`; none where they cannot be listed."""
    found: list[str] = []
    token = ""
    while True:
        answer = session.client.get(f"{CLUSTERS}{path}{WORKSPACES}", {"limit": str(_PAGE), "continue": token})
        if answer.status != 200:
            return []
        names = (str(each["metadata"]["name"]) for each in answer.object.get("items") or ())
        found += filter(_NAME.fullmatch, names)
        token = (answer.object.get("metadata") or {}).get("continue", "")
        if not token:
            return sorted(found)


def meant_instead(session: Session, path: str) -> str:
    """The nearest workspaces to one that is not there, to be put behind that; "" where nothing is near."""
    parts = path.split(":")
    for at in range(1, len(parts)):
        above, name = ":".join(parts[:at]), parts[at]
        names = children(session, above)
        if name not in names:
            found = [":".join([above, each, *parts[at + 1 :]]) for each in near(name, names)]
            return f"; did you mean {' or '.join(found)}?" if found else ""
    return ""

"""A workspace's summary: only what the head of the desired branch cannot tell about it.

Kept in the store beside the workspace and written to the status branch as it is; read again at recovery. It names
neither the workspace nor the head, so that workspaces that appeared in one commit share one blob. What is known of its
objects is their residue (plan/residue.py): a summary does not grow with its workspace.

    origin: 1f0c…            the commit in which the workspace appeared
    commit: 77ab…            the commit that last changed its own content (absent: the origin)
    served: 5d3e…            only while held back: the commit it is served at ("" if it never had a good one)
    held: 77ab…              only while held back: the commit since which it is
    errors: [...]            only while held back
    bound:                   only while held back, where an export offers other schemas by now than are served
      root:a:widgets: {cluster: 1abc…, identity: 9f86…, schemas: [v1.widgets.example.io]}
    identities: {widgets: 9f86…}    identity hashes of its APIExports
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Summary:
    """See the module's head. Mutable: loading updates it while it plans."""

    origin: str
    commit: str = ""
    served: str | None = None
    held: str = ""
    errors: list[str] = field(default_factory=list)
    bound: dict[str, dict[str, Any]] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"origin": self.origin}
        if self.commit and self.commit != self.origin:
            out["commit"] = self.commit
        if self.served is not None:
            out["served"] = self.served
        if self.held:
            out["held"] = self.held
        if self.errors:
            out["errors"] = self.errors
        if self.bound:
            out["bound"] = dict(sorted(self.bound.items()))
        if self.identities:
            out["identities"] = dict(sorted(self.identities.items()))
        return out

    @staticmethod
    def from_json(found: dict[str, Any]) -> Summary:
        """Raises KeyError or TypeError where it is not a summary."""
        origin = found["origin"]
        return Summary(
            origin=origin,
            commit=found.get("commit", origin),
            served=found.get("served"),
            held=found.get("held", ""),
            errors=list(found.get("errors") or ()),
            bound=dict(found.get("bound") or {}),
            identities=dict(found.get("identities") or {}),
        )

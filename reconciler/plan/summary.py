"""A workspace's summary: only what the head of the desired branch cannot tell about it.

Kept in the store beside the workspace and written to the status branch as it is; read again at recovery. It names
neither the workspace nor the head, so that workspaces that appeared in one commit share one blob.

    origin: 1f0c…            the commit in which the workspace appeared
    commit: 77ab…            the commit that last changed its own content (absent: the origin)
    served: 5d3e…            only while held back: the commit it is served at ("" if it never had a good one)
    held: 77ab…              only while held back: the commit since which it is
    errors: [...]            only while held back
    bound:                   only while held back, where an export offers other schemas by now than are served
      root:a:widgets: {cluster: 1abc…, identity: 9f86…, schemas: [v1.widgets.example.io]}
    objects:                 only where something differs from (origin, origin, 1)
      deployments.apps/default/web: {origin: 88d1…, commit: 77ab…, generation: 3}
    identities: {widgets: 9f86…}    identity hashes of its APIExports
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apiserver.model.keys import Key


def entry_name(key: Key) -> str:
    """`deployments.apps/default/web`; the identity of a bound kind is left out, it is not git's to know."""
    resource = key.resource.partition(":")[0]
    return f"{resource}/{key.namespace}/{key.name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one object. `uid` and `created` (RFC 3339) are set only where they do not follow from `origin`:
    it was adopted."""

    origin: str
    commit: str
    generation: int = 1
    uid: str = ""
    created: str = ""


@dataclass(slots=True)
class Summary:
    """See the module's head. Mutable: loading updates it while it plans."""

    origin: str
    commit: str = ""
    served: str | None = None
    held: str = ""
    errors: list[str] = field(default_factory=list)
    bound: dict[str, dict[str, Any]] = field(default_factory=dict)
    objects: dict[str, Entry] = field(default_factory=dict)
    identities: dict[str, str] = field(default_factory=dict)

    def entry(self, name: str) -> Entry:
        return self.objects.get(name) or Entry(self.origin, self.origin)

    def set(self, name: str, entry: Entry) -> None:
        if entry == Entry(self.origin, self.origin):
            self.objects.pop(name, None)
        else:
            self.objects[name] = entry

    def forget(self, name: str) -> None:
        self.objects.pop(name, None)

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
        if self.objects:
            out["objects"] = {name: self._entry_json(e) for name, e in sorted(self.objects.items())}
        if self.identities:
            out["identities"] = dict(sorted(self.identities.items()))
        return out

    def _entry_json(self, entry: Entry) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if entry.origin != self.origin:
            out["origin"] = entry.origin
        if entry.commit != entry.origin:
            out["commit"] = entry.commit
        if entry.generation != 1:
            out["generation"] = entry.generation
        if entry.uid:
            out["uid"] = entry.uid
        if entry.created:
            out["created"] = entry.created
        return out

    @staticmethod
    def from_json(found: dict[str, Any]) -> Summary:
        """Raises KeyError or TypeError where it is not a summary."""
        origin = found["origin"]
        objects = {}
        for name, e in (found.get("objects") or {}).items():
            begun = e.get("origin", origin)
            objects[name] = Entry(
                begun, e.get("commit", begun), e.get("generation", 1), e.get("uid", ""), e.get("created", "")
            )
        return Summary(
            origin=origin,
            commit=found.get("commit", origin),
            served=found.get("served"),
            held=found.get("held", ""),
            errors=list(found.get("errors") or ()),
            bound=dict(found.get("bound") or {}),
            objects=objects,
            identities=dict(found.get("identities") or {}),
        )

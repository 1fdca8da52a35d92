"""A workspace's summary: only what the head of the desired branch cannot tell about it.

Kept in the store beside the workspace and written to the status branch as it is; read again at recovery. It names
neither the workspace nor the head, so that workspaces that appeared in one commit share one blob. What is known of its
objects is their residue (plan/residue.py): a summary does not grow with its workspace.

    origin: 1f0c…            the commit in which the workspace appeared (model/commits has the text of a commit)
    appeared: 1767225600     of one that appeared with a commit of another repository: that commit's time, since whoever
                             reads this may not have it
    commit: 77ab…            the commit that last changed its own content (absent: the origin)
    served: 5d3e…            only while held back: the commit it is served at ("" if it never had a good one)
    held: 77ab…              only while held back: the commit since which it is
    before: 90fe…            the same: the commit that was served until then (absent: the first parent of `held`)
    claims: {workspaces/root/a/b: root:a:b}   the same: directories below its own, or that this is in, that had lost
                             their workspace.yaml in the commit it is served at, and were workspaces still
    errors: [...]            only while held back
    trespasses: [...]        the same: what was done to it without a right (plan/trespasses)
    damaged: [3fa9…]         the same: digests of its encrypted files that a key opened and found damaged, so that they
                             are no good without it either
    vouched: root:a:team     the same, of one that never was served: its type, where workspace.yaml does not name that
                             in full and whoever pushed that was asked about
    at: 3c9d…                on the status branch alone, and only of one that is past the commit that is named there:
                             where it is
    bindings:                bindings that are bound to something else than their export offers by now; all of them
                             while held back (plan/bindings.BindingInShort)
      widgets: {cluster: 1abc…, identity: 9f86…, schemas: [v1.widgets.example.io], condition: APIExportValid, reason: …}
    waiting: [APIBinding/gadgets]   definitions and bindings that are not served, since others have their names
    ending: [APIBinding/gadgets]    definitions and bindings that no file declares any more, served until what is of
                             their kinds has gone
    leaves: true             a commit took it away, and something in it waits for finalizers
    asked:                   of one that leaves: of workspaces that a commit has in its place or below that, which are
                             judged once it has gone, what was done there without a right, and `vouched`
      root:a: {trespasses: [...], vouched: root:a:team}
    first: root:a            of one that moved: where it appeared, from which its logical cluster has its name
    shard: eu                the Shard that it is on, where that is not `root`
    over: 1f0c… 2026-…       the pin of the commit that it is served at, where that is over (its commit and its end):
                             it counts for nothing, whatever the clock says by now
    content: shop-1abc.77ab…  of one whose content comes from another repository: the commit there that is served
    source: {of: 1abc…, repository: https://…, branch: main, path: deploy/kid, border: deploy}   of one that stands in
                             the source of another: the logical cluster of that one, where `content` is a commit, and
                             the path of that source
    type: root:organization  where workspace.yaml does not name it in full; root:universal if it is not here
    brought:                 only while held back, or where its type cannot be resolved by now: what it brought
      {writes: Store, builtins: Kubernetes, labels: {tier: gold}}
    defaults: [root:a:widgets]   exports that it takes by the default bindings of its type, which it keeps
    initializers, terminators: [1abc…:gold]   names of the programs that its type had act on it when it appeared
    identities: {widgets: 9f86…}    identity hashes of its APIExports
    turned:                  conditions that say something else than when their objects came, and since when
      Workspace: {CommitApplied: 2026-…}        (plan/turned)
      APIBinding/widgets: {BindingUpToDate: 2026-…}
    step:                    in the store, and on the status branch as long as `at` is: what stood before the step in
                             which something turned last (plan/turned), and how it was held before it went on
                             (plan/heldbefore)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apiserver.model import commits
from apiserver.model.commits import NONE, CommitRef


@dataclass(slots=True)
class Summary:
    """See the module's head. Mutable: loading updates it while it plans."""

    origin: CommitRef
    commit: CommitRef = NONE
    served: CommitRef | None = None
    held: CommitRef = NONE
    before: CommitRef = NONE
    claims: dict[str, str] = field(default_factory=dict)
    trespasses: list[dict[str, Any]] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    vouched: str = ""
    errors: list[str] = field(default_factory=list)
    at: CommitRef = NONE
    bindings: dict[str, dict[str, Any]] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    ending: list[str] = field(default_factory=list)
    leaves: bool = False
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    first: str = ""
    shard: str = ""
    over: str = ""
    content: CommitRef = NONE
    type: str = ""
    brought: dict[str, Any] = field(default_factory=dict)
    defaults: list[str] = field(default_factory=list)
    initializers: list[str] = field(default_factory=list)
    terminators: list[str] = field(default_factory=list)
    identities: dict[str, str] = field(default_factory=dict)
    turned: dict[str, dict[str, str]] = field(default_factory=dict)
    step: dict[str, Any] = field(default_factory=dict)
    appeared: int = 0
    source: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"origin": str(self.origin)}
        if self.commit not in (NONE, self.origin):
            out["commit"] = str(self.commit)
        if self.served is not None:
            out["served"] = str(self.served)
        if self.held != NONE:
            out["held"] = str(self.held)
        if self.before != NONE:
            out["before"] = str(self.before)
        if self.claims:
            out["claims"] = dict(sorted(self.claims.items()))
        if self.errors:
            out["errors"] = self.errors
        if self.trespasses:
            out["trespasses"] = self.trespasses
        if self.damaged:
            out["damaged"] = self.damaged
        if self.vouched:
            out["vouched"] = self.vouched
        if self.at != NONE:
            out["at"] = str(self.at)
        said = {
            "bindings": dict(sorted(self.bindings.items())),
            "waiting": sorted(self.waiting),
            "ending": sorted(self.ending),
            "leaves": self.leaves,
            "asked": dict(sorted(self.asked.items())),
            "first": self.first,
            "shard": self.shard,
            "over": self.over,
            "content": str(self.content),
            "type": self.type,
            "brought": self.brought,
            "defaults": self.defaults,
            "initializers": self.initializers,
            "terminators": self.terminators,
            "identities": dict(sorted(self.identities.items())),
            "turned": dict(sorted(self.turned.items())),
            "step": self.step,
            "appeared": self.appeared,
            "source": self.source,
        }
        return out | {name: value for name, value in said.items() if value}

    @staticmethod
    def from_json(found: dict[str, Any]) -> Summary:
        """Raises KeyError, TypeError or ValueError where it is not a summary."""
        origin, served = commits.parse(found["origin"]), found.get("served")
        return Summary(
            origin=origin,
            commit=commits.parse(found["commit"]) if "commit" in found else origin,
            served=commits.parse(served) if served is not None else None,
            held=commits.parse(found.get("held", "")),
            before=commits.parse(found.get("before", "")),
            claims=dict(found.get("claims") or {}),
            errors=list(found.get("errors") or ()),
            trespasses=list(found.get("trespasses") or ()),
            damaged=list(found.get("damaged") or ()),
            vouched=found.get("vouched", ""),
            at=commits.parse(found.get("at", "")),
            bindings=dict(found.get("bindings") or {}),
            waiting=list(found.get("waiting") or ()),
            ending=list(found.get("ending") or ()),
            leaves=bool(found.get("leaves")),
            asked=dict(found.get("asked") or {}),
            first=found.get("first", ""),
            shard=found.get("shard", ""),
            over=found.get("over", ""),
            content=commits.parse(found.get("content", "")),
            type=found.get("type", ""),
            brought=dict(found.get("brought") or {}),
            defaults=list(found.get("defaults") or ()),
            initializers=list(found.get("initializers") or ()),
            terminators=list(found.get("terminators") or ()),
            identities=dict(found.get("identities") or {}),
            turned=dict(found.get("turned") or {}),
            step=dict(found.get("step") or {}),
            appeared=int(found.get("appeared") or 0),
            source={str(name): str(value) for name, value in (found.get("source") or {}).items()},
        )

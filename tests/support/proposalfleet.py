"""A fleet whose writes are proposals, with the API's write path on one side and what puts them on branches on the
other.

For unit tests: threads of this process, no server.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.commitfleet import CommitFleet
from support.fleetrepo import TREEPLANE_YAML, FleetRepo

from apiserver.admission.proposing import ProposalSink
from apiserver.model.proposals import branch_of
from apiserver.registry import deletion, rest
from apiserver.registry.rest_options import Collection, DeleteOptions, Outcome, WriteOptions
from reconciler.loading.proposals import ProposalBounds, Proposals
from reconciler.loading.trial import Trial
from reconciler.plan.deletions import ALLOW
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.difference import difference
from reconciler.repository.objects import Repository
from reconciler.repository.proposals import ProposalBranches

Object = dict[str, Any]

WRITES_PROPOSE = TREEPLANE_YAML + "spec: {writes: Propose}\n"


class ProposalFleet(CommitFleet):
    """As CommitFleet. Writes are by `user`, alice if nothing is said."""

    bounds = ProposalBounds()

    def __init__(
        self, directory: Path, repo: FleetRepo | None = None, keys: Path | None = None, renders: Renders = NOWHERE
    ) -> None:
        super().__init__(directory, repo, keys, renders)
        self.proposals = self.new_proposals()

    def new_proposals(self) -> Proposals:
        """As after a restart."""
        self.branches = ProposalBranches(self.mirror, carried=[ALLOW])
        trial = Trial(self.loader, self.secrets.of, self.keys / "identities", 60)
        return Proposals(self.store, self.branches, trial, lambda name: f"https://forge/{name}", self.bounds)

    def _round(self) -> None:
        if self.proposals.waiting():
            self.proposals.serve()

    # -- the API's side

    def at(self, path: str, resource: str, user: str = "alice") -> Collection:
        found = super().at(path, resource, user)
        return replace(found, sink=ProposalSink(self.store, self.commits, self.record(path), user))

    def made(self, path: str, resource: str, obj: Object, user: str = "alice", *, dry: bool = False) -> Outcome:
        """What a POST is answered."""
        at = self.at(path, resource, user)
        namespace = (obj["metadata"].get("namespace") or "default") if at.kind.namespaced else ""
        return rest.create(at, namespace, obj, WriteOptions("test", dry_run=dry))

    def applied(self, path: str, resource: str, obj: Object, user: str = "alice", manager: str = "test") -> Outcome:
        """What server-side apply is answered."""
        at = self.at(path, resource, user)
        namespace = (obj["metadata"].get("namespace") or "default") if at.kind.namespaced else ""
        return rest.apply(at, namespace, obj["metadata"]["name"], obj, WriteOptions(manager, force=True))

    def patched(self, path: str, resource: str, name: str, user: str = "alice", **fields: Any) -> Outcome:
        """What a patch is answered that sets top-level fields."""
        at = self.at(path, resource, user)
        namespace = "default" if at.kind.namespaced else ""
        return rest.patch(at, namespace, name, lambda live: {**live, **fields}, WriteOptions("test"))

    def deleted(self, path: str, resource: str, name: str, user: str = "alice", *, dry: bool = False) -> Outcome:
        at = self.at(path, resource, user)
        return deletion.delete(at, "default" if at.kind.namespaced else "", name, DeleteOptions(dry_run=dry))

    # -- git's side

    def proposal(self, path: str = "root:a", user: str = "alice") -> str | None:
        """The head of a branch."""
        return Repository(self.repo.path).ref(f"refs/heads/{branch_of(user, path)}")

    def branches_there(self) -> list[str]:
        found = Repository(self.repo.path).references
        return sorted(name for name in found if name.startswith("refs/heads/treeplane/proposals/"))

    def proposed(self, path: str = "root:a", user: str = "alice") -> dict[str, str | None]:
        """Files as the branch has them, None where it takes one away, where it differs from what it stands on."""
        head = self.proposal(path, user)
        if head is None:
            return {}
        repo = Repository(self.repo.path)
        base = repo.merge_base(head, self.repo.head)
        assert base is not None
        return {
            change.path: None if change.new is None else repo.blob(change.new.id).decode()
            for change in difference(repo, repo.commit(base).tree, repo.commit(head).tree)
        }

    def subjects(self, path: str = "root:a", user: str = "alice") -> list[str]:
        """Of the branch's commits, oldest first, with their authors."""
        repo = Repository(self.repo.path)
        found = reversed([*repo.new_commits(self.proposal(path, user) or "", self.repo.head)])
        return [f"{c.author.partition(' <')[0]}: {c.message.splitlines()[0]}" for c in found]

    def merge(self, path: str = "root:a", user: str = "alice") -> None:
        """As a forge does with a pull request, and loads it."""
        head = self.proposal(path, user)
        assert head is not None
        self.repo.merge({**self.proposed(path, user)}, head)
        self.load()

"""Fleets with workspaces whose content comes from repositories of tenants, which are fetched by what stands for the
follower: at once, when a test says so, and without a network."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.fleetrepo import Files, FleetRepo
from support.loadedfleet import A, LoadedFleet

from reconciler.loading import sourcelist
from reconciler.loading.loader import Loader
from reconciler.loading.remotes import Remotes
from reconciler.loading.rendersahead import PreparedRenderings
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.objects import Repository
from reconciler.repository.write import move_ref

HEAD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
SHOP, OTHER = "https://git.example.org/shop.git", "https://git.example.org/other.git"
FLEET = "https://git.example.org/fleet.git"


def sourcing(url: str = SHOP, path: str = "deploy", branch: str = "main", **more: Any) -> str:
    """A workspace.yaml."""
    said = {"repository": url, "branch": branch, **({"path": path} if path else {}), **more}
    return f"{HEAD}spec: {{source: {json.dumps(said)}}}\n"


class TenantRepos:
    """Tenants' repositories by URL, as they are where they are; `away`: those that do not answer."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.away = folder, set[str]()
        self._made: dict[str, FleetRepo] = {}

    def at(self, url: str) -> FleetRepo:
        found = self._made.get(url)
        if found is None:
            self.folder.mkdir(exist_ok=True)
            found = self._made[url] = FleetRepo(self.folder / f"{len(self._made)}.git")
        return found

    def push(self, files: Files, url: str = SHOP, message: str = "Change", parent: str | None = None) -> str:
        return self.at(url).commit(files, message, parent)

    def head(self, url: str, branch: str) -> str:
        return self.at(url).repo.ref(f"refs/heads/{branch}") or ""


class SourcedFleet(LoadedFleet):
    """`follow` fetches what the workspaces there are want, and judges again where that is news. `by_id`: remotes give
    any commit by its id, wherever their branches are; `is_apart`: what is rendered there is so before it counts, as a
    server does it."""

    by_id = False
    is_apart = False
    ahead: PreparedRenderings | None = None

    def __init__(
        self,
        directory: Path,
        tenants: TenantRepos,
        repo: FleetRepo | None = None,
        keys: Path | None = None,
        renders: Renders = NOWHERE,
    ) -> None:
        self.tenants, self.heads, self.judged = tenants, dict[tuple[str, str], str](), sourcelist.Judged()
        super().__init__(directory, repo, keys, renders)

    def new_loader(self, *more: Any) -> Loader:
        loader = super().new_loader(*more)
        loader.steppers.remotes = Remotes(lambda name, branch: self.heads.get((name, branch), ""), (FLEET,))
        if self.is_apart:
            self.ahead = loader.sources.theirs = PreparedRenderings(self.renders, at_once=0)
            loader.steppers.remotes = replace(loader.steppers.remotes, is_rendered=self.ahead.is_ready)
        self.judged.clear()
        return loader

    def fetch(self, urls: Iterable[str] | None = None) -> None:
        """What the remotes say by now is here; `urls`: of no others."""
        store = self.mirror.repositories.sources
        assert store is not None
        for name, each in sourcelist.listed(self.store).items():
            url, branch = each.ref.repository, each.ref.branch
            head = self.tenants.head(url, branch) if url not in self.tenants.away else ""
            if head and (urls is None or url in urls):
                here = store.make(name)
                theirs = self.tenants.at(url).repo
                for commit in (head, *(each.keep if self.by_id else ())):
                    if theirs.has(commit):
                        copied(theirs, here, commit)
                ref = f"refs/treeplane/source/{branch}"
                move_ref(here, ref, head, here.ref(ref))
                self.heads[name, branch] = head

    def look(self) -> set[str]:
        """Judges again whoever is not judged with what is here; who that is."""
        found = sourcelist.listed(self.store).values()
        heads = {each.name: self.heads.get((each.name, each.ref.branch), "") for each in found}
        due = sourcelist.due(self.store, found, heads, self.judged)
        if self.ahead is not None:
            while self.ahead.work():
                pass
            due |= self.ahead.came() & self.paths()
        self._seen = self.store.revision()
        if due:
            self.loader.look_again(due)
        for each in sourcelist.listed(self.store).values():
            if each.path in due and each.is_wanted:
                self.judged[each.path] = each.ref, heads.get(each.name, "")
        return due

    def follow(self, urls: Iterable[str] | None = None) -> set[str]:
        self.fetch(urls)
        return self.look()

    def push(self, files: Files, url: str = SHOP, message: str = "Change", parent: str | None = None) -> str:
        """A commit of the tenant's, which is followed."""
        made = self.tenants.push(files, url, message, parent)
        self.follow()
        return made

    def source(self, url: str = SHOP, path: str = "deploy", at: str = A, **more: Any) -> None:
        """Has a workspace come from there: in place of what its directory held."""
        self.commit({f"{at}/app.yaml": None, f"{at}/workspace.yaml": sourcing(url, path, **more)})
        self.follow()


def copied(whence: Repository, here: Repository, head: str) -> None:
    """All that a commit contains, as a fetch brings it."""
    pending = [(head, 1)]
    while pending:
        each, kind = pending.pop()
        if here.has(each):
            continue
        if kind == 1:
            info = whence.commit(each)
            pending += [(info.tree, 2), *((parent, 1) for parent in info.parents)]
        elif kind == 2:
            pending += [(e.id, 2 if e.kind == "tree" else 3) for e in whence.entries(each) if e.kind != "commit"]
        here.git.write((0, 1, 2, 3)[kind], whence.raw(each, kind))

"""Workspaces that stand in a tenant's repository, below the directory that is the content of another one (spec.source).

Called by elsewhere, for each that is judged. Such a workspace is what it would be in the fleet's repository: it is
judged and held by itself, at the commit by which the workspace above it was judged last (`Graft`). What it says of
itself is the tenant's, too, so what only the fleet may say is refused. What programs make of it is known by then
(`Remotes.is_rendered`), or it is judged again once it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from apiserver.model import commits, marks
from apiserver.model.commits import NONE, CommitRef
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.errors import LayoutError
from reconciler.layout.grafts import BORDER, OF, Graft
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.case import Case, Recorded, Sourced, was_served
from reconciler.loading.pins import AsServed
from reconciler.loading.remotes import UNKNOWN
from reconciler.loading.site import Site
from reconciler.loading.sourceheads import SourceHead
from reconciler.loading.sources import Content
from reconciler.plan.deletions import ALLOW
from reconciler.repository.objects import TreeEntry

_FLEETS = ("source", "serve", "mount", "location")
"""What only a workspace.yaml of the fleet's may say under spec."""
_FLEETS_ANNOTATIONS = (marks.REQUIRED_GROUPS, marks.MOST_OBJECTS)


class InheritedContent:
    """Of one step."""

    def __init__(self, site: Site, as_served: AsServed) -> None:
        self._sources, self._as_served, self._remotes = site.sources, as_served, site.remotes

    def applied(self, case: Case, place: WorkspaceDir) -> Case:
        """The case with where its content is read, and what is wrong with that."""
        graft = case.tree.graft_of(place.directory)
        ref = SourceRef.kept(graft.said) if graft is not None else None
        if graft is None or ref is None:
            return case
        ref = ref._replace(path=place.theirs)
        if case.recorded is not None and was_served(case.recorded):
            return self._returning(case, graft, ref, case.recorded)
        found = self._found(case, graft, graft.key.commit, ref)
        if found is None:
            return self._held(case, graft, ref, [self._away(case, graft.key.commit, ref)])
        if place.manifest is None:
            return self._held(case, graft, ref, ())
        problems = [*self._refused(case, place)]
        if problems:
            return self._held(case, graft, ref, problems)
        if not self._is_rendered(case, graft, found):
            return self._waiting(case, graft, ref)
        return self._with(case, graft, ref, found, self._standing(case, graft, ref, found))

    def _found(self, case: Case, graft: Graft, commit: CommitRef, ref: SourceRef) -> Content | None:
        return self._sources.sourced(case.path, commit, ref.path, graft.key.theirs)

    def _returning(self, case: Case, graft: Graft, ref: SourceRef, known: Recorded) -> Case:
        """As it was served. Where that is nowhere any more, though there is a commit which is followed instead: as that
        has it."""
        commits_here = (known.summary.content, graft.key.commit) if graft.tree is not None else (known.summary.content,)
        for commit in commits_here:
            found = self._found(case, graft, commit, ref) if commit else None
            if found is not None and not self._is_rendered(case, graft, found):
                return self._waiting(case, graft, ref)
            if found is not None:
                return self._with(case, graft, ref, found, commit)
        return self._held(case, graft, ref, [self._away(case, known.summary.content, ref)])

    def _away(self, case: Case, commit: CommitRef, ref: SourceRef) -> LayoutError:
        text = f"{commit.id:.10} of {ref} is not here yet"
        hint = "it comes once it is fetched: SourceFollowed of the workspace above says how far that is"
        where = case.directory.manifest_path if case.directory is not None else ref.path
        return LayoutError(where, 0, 0, text, hint)

    def _refused(self, case: Case, place: WorkspaceDir) -> Iterator[LayoutError]:
        """What only the fleet may say."""
        said = self._sources.workspace(case.tree, place)
        for manifest in said.manifests if said is not None else ():
            metadata = manifest.value.get("metadata") or {}
            annotations = metadata.get("annotations") or {}
            named = [f"spec.{field}" for field in _FLEETS if (manifest.value.get("spec") or {}).get(field)]
            named += ["metadata.uid"] if self._sources.uid_there(case.tree, place) else []
            named += [f"metadata.annotations[{mark}]" for mark in _FLEETS_ANNOTATIONS if mark in annotations]
            for field in named:
                line = self._sources.line_in_workspace(case.tree, place, field)
                text = f"{field} is for the fleet's own repository to say, and this file is in another one"
                yield LayoutError(place.manifest_path, line, 0, text, "leave it out")

    def _standing(self, case: Case, graft: Graft, ref: SourceRef, found: Content) -> CommitRef:
        """The commit that it is served at, where all of it is the same there: of a later one it is not, whichever way
        it is found to be so. NONE where it differs, or is not followed from there."""
        record = case.record
        at, now = commits.parse(record.source.get("commit", "")) if record is not None else NONE, graft.key.commit
        if record is None or not record.served or at == now:
            return NONE
        if (record.source.get("path"), record.source.get(BORDER)) != (ref.path, graft.key.theirs):
            return NONE
        was = self._found(case, graft, at, ref) if at.repository == now.repository else None
        if was is None or not found.tree.repo.is_ancestor(at.id, now.id) or _markers(was) != _markers(found):
            return NONE
        here, there = self._sources.of(*found), self._sources.of(*was)
        return at if next(iter(here.changes(there)), None) is None else NONE

    def _is_rendered(self, case: Case, graft: Graft, found: Content) -> bool:
        """Whether it is known what programs make of it, and of what is served."""
        above = case.tree.at(graft.directory)
        if self._remotes is None or above is None:
            return True
        directories = [*self._sources.theirs_rendered(found)]
        directories += self._sources.theirs_rendered(self._as_served.of(case))
        return self._remotes.is_rendered(above.path, case.path, directories)

    def _waiting(self, case: Case, graft: Graft, ref: SourceRef) -> Case:
        """Until that is so: as it was, since nobody waits for it. Where nobody is served nothing is wrong with that."""
        assert case.directory is not None
        if self._remotes is None or not self._remotes.patient:
            return self._held(case, graft, ref, [LayoutError(case.directory.manifest_path, 0, 0, *UNKNOWN)])
        stays = self._as_served.of(case) or self._sources.absent(case.tree, case.directory)
        said = case.record.source if case.record is not None else {}
        sourced = Sourced(said, _follows(graft, ref), there=True, seen=graft.key.commit)
        return case._replace(content=stays, sourced=sourced)

    def _with(self, case: Case, graft: Graft, ref: SourceRef, found: Content, commit: CommitRef = NONE) -> Case:
        at, follows = commit or graft.key.commit, _follows(graft, ref)
        served = commits.parse(case.record.source.get("commit", "")) if case.record is not None else NONE
        head = SourceHead(ref, found.tree.repo, at, served if served.repository == at.repository else NONE)
        said = {**follows, "commit": str(at)}
        sourced = Sourced(said, follows, there=True, allows=partial(head.said, ALLOW), seen=at)
        return case._replace(content=found, sourced=sourced)

    def _held(self, case: Case, graft: Graft, ref: SourceRef, problems: Iterable[LayoutError]) -> Case:
        assert case.directory is not None
        content = self._as_served.of(case) or self._sources.absent(case.tree, case.directory)
        sourced = Sourced(follows=_follows(graft, ref), there=True, seen=graft.key.commit)
        return case._replace(content=content, sourced=sourced, problems=(*case.problems, *problems))


def _markers(found: Content) -> list[TreeEntry]:
    return found.tree.markers(found.directory) if isinstance(found.tree, ContentTree) else []


def _follows(graft: Graft, ref: SourceRef) -> dict[str, str]:
    return {**ref.as_kept(), OF: graft.said[OF], BORDER: graft.key.theirs}

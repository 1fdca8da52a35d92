"""Workspaces whose own content comes from another repository, a tenant's, since their workspace.yaml says so
(spec.source). That file stays the fleet's. Workspaces below it there are judged by themselves (inherited); which there
are follows the head by which the workspace itself was judged, be its content good or not (`Site.heads`, see grafting).

Called by cases, for each workspace that is judged: as with a pin, a source is no more than another place where content
is read, so all else (kinds, deletions that have to be allowed, what is recorded) is as with any content. Nobody is
asked for that repository here: what is here of it was fetched by whoever follows it (the room sourcing), and which head
it has by that is looked at once for each step. The commit that is served is recorded (Summary.content), so a recovery
brings that back, whatever the branch is at by then.

What is not here, or not good, leaves what is served: absence is no deletion. A head that does not contain what is
served is not followed, unless it says so itself (as heads says of the fleet's branch); where commits have to be signed,
so has a head (`Remotes.unsigned`, see remotes).

One that is pinned (spec.serve) is served with the commit that the pin names, whatever its branch is at; when that is
over the head is what is new. Pins are over as any (`pins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.counts import some_of
from apiserver.model.identity import logical_cluster_name
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.errors import LayoutError
from reconciler.layout.pin import Pin
from reconciler.layout.sourceref import PINNED, SourceRef
from reconciler.layout.workspacedir import WorkspaceDir, named
from reconciler.loading import pins
from reconciler.loading.case import Case, Pinned, Sourced, was_served
from reconciler.loading.pins import AsServed
from reconciler.loading.remotes import UNKNOWN, Remotes
from reconciler.loading.site import SeenHead, Site
from reconciler.loading.sourceheads import PinnedHead, SourceHead
from reconciler.loading.sources import Content
from reconciler.plan.deletions import ALLOW as ALLOW_DELETE
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import same_place, source_name

FIELD = "spec.source"
GRAFTED = "grafted"
"""See WorkspaceRecord.follows."""
_FILES = 3
_STAYS = "nothing is deleted for that"


class SourcedContent:
    """Of one step, which sees one head of each source."""

    def __init__(self, site: Site, as_served: AsServed, is_over: Callable[[Case, Pin], bool]) -> None:
        """`is_over`: whether a pin is."""
        self._site, self._sources, self._as_served, self._is_over = site, site.sources, as_served, is_over
        self._heads: dict[tuple[str, str], str] = {}

    def applied(self, case: Case, place: WorkspaceDir, ref: SourceRef) -> Case:
        """The case with where its content is read, and what is wrong with that."""
        pin = self._sources.pin(case.tree, place)
        if pin is None:
            return self._applied(case, place, ref)
        if self._is_over(case, pin):
            return self._applied(case, place, ref)._replace(pinned=Pinned(over=pin.name, there=True))
        found = self._applied(case, place, ref, pin.commit)
        counts = found.sourced.commit.id == pin.commit
        said = {**pin.as_said(), "file": place.manifest_path} if counts else {}
        return found._replace(pinned=Pinned(said, due=pin.due, there=True))

    def _applied(self, case: Case, place: WorkspaceDir, ref: SourceRef, pinned: str = "") -> Case:
        """`pinned`: the commit that it is pinned to, "" for none."""
        remotes, known = self._site.remotes, case.recorded
        if known is not None and was_served(known) and self._is_of(case, ref, known.summary.content):
            return self._returning(case, place, ref, known.summary.content)
        if remotes is None:
            return self._unasked(case, place, ref)
        problems = [*self._misplaced(case, place, ref, remotes)]
        if problems:
            return self._held(case, place, ref, problems)
        at = self._head(case, ref, remotes)
        at = PinnedHead(at, source_name(self._cluster(case), ref.repository), pinned) if pinned else at
        if remotes.patient and at.is_unknown:
            return self._unasked(case, place, ref)
        found = self._content(case, ref, at, problems)
        if found is not None and case.recorded is None:
            self._site.heads[case.path] = SeenHead(ref, at.head or at.served, found)
        if found is not None:
            problems += self._against_content(case, found)
        if found is not None and not self._is_rendered(case, found, problems) and remotes.patient:
            return self._unasked(case, place, ref)
        if found is None or problems:
            return self._held(case, place, ref, problems, pinned)
        return self._with(case, ref, at, found, pinned)

    def _is_of(self, case: Case, ref: SourceRef, served: CommitRef) -> bool:
        """Whether a recorded commit is of that source. Of one that was away when the fleet went on, and was lost again,
        what is recorded may be older than what its workspace.yaml says: then it comes back as that says."""
        return served.repository == source_name(self._cluster(case), ref.repository)

    def _unasked(self, case: Case, place: WorkspaceDir, ref: SourceRef) -> Case:
        """Where nobody knows of tenants' repositories, or nobody is served: what is served stays, as far as that is
        here, and nobody is told that something is wrong."""
        known = case.record.source if case.record is not None else {}
        served = Sourced(known).commit if SourceRef.kept(known) == ref else NONE
        found = self._sources.sourced(case.path, served, ref.path) if served else None
        at = SourceHead(ref, None, served, served)
        stays = found or self._as_served.of(case) or self._sources.absent(case.tree, place)
        return self._with(case, ref, at, stays)

    def _returning(self, case: Case, place: WorkspaceDir, ref: SourceRef, served: CommitRef) -> Case:
        """As it was served, whatever its source is at by now. Where its branch was rewritten since, and what was served
        is nowhere any more, as that says, if it says so itself."""
        remotes, at = self._site.remotes, SourceHead(ref, None, served, served)
        found = self._sources.sourced(case.path, served, ref.path) if served else None
        problems: list[tuple[str, str]] = []
        if found is not None and not self._is_rendered(case, found, problems):
            return self._held(case, place, ref, problems)
        if found is not None or remotes is None:
            return self._with(case, ref, at, found or self._sources.absent(case.tree, place))
        head = self._head(case, ref, remotes).head
        at = SourceHead(ref, self._repository(served.repository), head, served)
        if at.repo is None or not head or not at.repo.has(head.id):
            text = f"{served.id:.10} of {ref}, which was served, is not here yet"
            hint = "it comes back once it is fetched: SourceFollowed says how far that is"
            return self._held(case, place, ref, [(text, hint)])
        found = self._found(case, ref, at, problems)
        if found is not None and not self._is_rendered(case, found, problems):
            found = None
        return self._with(case, ref, at, found) if found is not None else self._held(case, place, ref, problems)

    def _misplaced(
        self, case: Case, place: WorkspaceDir, ref: SourceRef, remotes: Remotes
    ) -> Iterator[tuple[str, str]]:
        """Why the workspace cannot have such a source, whatever that holds."""
        if case.path == paths.ROOT:
            yield "the workspace root has what the fleet's own repository holds", "leave it out"
        if any(same_place(ref.repository, url) for url in remotes.fleet):
            yield f"{ref.repository} is this fleet's own repository", "leave it out, and put the files beside this one"
        own = [path for path, _ in case.tree.plain.files(place)]
        if own:
            text = f"its content comes from {ref}, and there are manifests beside it: {some_of(own, _FILES)}"
            yield text, "remove them, or leave spec.source out"

    def _head(self, case: Case, ref: SourceRef, remotes: Remotes) -> SourceHead:
        name = source_name(self._cluster(case), ref.repository)
        asked = name, ref.branch
        if asked not in self._heads:
            self._heads[asked] = remotes.head(*asked)
        head = CommitRef(name, self._heads[asked]) if self._heads[asked] else NONE
        known = case.record.source if case.record is not None and case.record.served else {}
        served = Sourced(known).commit
        if served.repository != name:
            served = NONE
        same = known.get("branch") == ref.branch
        return SourceHead(ref, self._repository(name), head, served, is_same_branch=same)

    def _cluster(self, case: Case) -> str:
        """The logical cluster that the workspace has, or will have."""
        first = case.recorded.summary.first if case.recorded is not None else ""
        if case.record is not None:
            return case.record.cluster
        return logical_cluster_name(self._site.fleet, first or case.path, case.origin)

    def _repository(self, name: str) -> Repository | None:
        repositories = self._sources.repositories
        try:
            return repositories.of(CommitRef(name, "")) if repositories is not None else None
        except RepositoryUnreadable:
            return None

    def _content(self, case: Case, ref: SourceRef, at: SourceHead, problems: list[tuple[str, str]]) -> Content | None:
        """What the head has, or, where nobody knows of one, what is served; None with what is wrong."""
        repo = at.repo
        if at.served and (repo is None or not repo.has(at.served.id)):
            hint = "it goes on once that is fetched again: SourceFollowed says how far that is"
            problems.append((f"{at.served.id:.10} of {ref}, which is served, is gone from this server's disk", hint))
            return None
        if at.is_unknown:
            hint = "it is served once it is fetched: SourceFollowed says how far that is"
            problems.append((f"nothing of {ref} is here yet", hint))
            return None
        return self._found(case, ref, at, problems)

    def _found(self, case: Case, ref: SourceRef, at: SourceHead, problems: list[tuple[str, str]]) -> Content | None:
        """The same of what is here."""
        repo, commit = at.repo, at.head or at.served
        assert repo is not None
        why = at.against()
        if why is not None:
            problems.append((f"{why[0]}; {_STAYS}", why[1]))
            return None
        unsigned = self._site.remotes.unsigned(repo, commit) if at.is_new and self._site.remotes is not None else ""
        if unsigned:
            hint = "sign it by a key that signers/ of the fleet's branch names"
            problems.append((f"{commit.id:.12} of {ref} is not taken, since {unsigned}", hint))
            return None
        found = self._sources.sourced(case.path, commit, ref.path)
        fault = f"there is no directory {ref.path}/" if found is None else self._sources.fault_of(found)
        if found is None or fault:
            hint = "push a commit that has it, or name another directory"
            problems.append((f"of {ref} {commit.id:.10} is at hand, and {fault}; {_STAYS}", hint))
            return None
        return found

    def _against_content(self, case: Case, found: Content) -> Iterator[tuple[str, str]]:
        """What is wrong with it, but holds nothing back that is below."""
        there = found.tree
        if not isinstance(there, ContentTree):
            return
        for each in there.markers(found.directory):
            marker = joined(found.directory.directory, each.name)
            text = f"{marker} stands where the workspace's own would, which is the fleet's"
            yield text, "take it out, or put it into a directory of its own: it is a workspace below this one then"
        yield from self._twins(case, there, found)

    def _twins(self, case: Case, there: ContentTree, found: Content) -> Iterator[tuple[str, str]]:
        """Workspaces there that the fleet has itself, or that would stand in a directory of the fleet's."""
        place, plain, top = case.directory, case.tree.plain, found.directory.directory
        if place is None:
            return
        ours = {each.name for each in plain.repo.entries(place.tree) if each.kind == "tree"}
        for directory in there.nested(found.directory) if ours else ():
            below = directory[len(top) + 1 :] if top else directory
            first = below.partition("/")[0]
            if first in ours:
                hint = "give that directory another name there"
                yield f"{directory}/ would stand in {place.directory}/{first}/, which is the fleet's own", hint
                continue
            path = _path_of(there, found.directory, case.path, directory)
            if plain.directories(path):
                text = f"{directory}/ would be the workspace {path}, and {plain.directories(path)[0]}/ is that already"
                yield text, "give that directory another name there"

    def _is_rendered(self, case: Case, found: Content, problems: list[tuple[str, str]]) -> bool:
        """Whether it is known what programs make of it, and of what is served; if not, nobody waits for that."""
        remotes, served = self._site.remotes, self._as_served.of(case)
        directories = [*self._sources.theirs_rendered(found)]
        directories += self._sources.theirs_rendered(served)
        if remotes is None or remotes.is_rendered(case.path, case.path, directories):
            return True
        problems.append(UNKNOWN)
        return False

    def _with(self, case: Case, ref: SourceRef, at: SourceHead, found: Content, pinned: str = "") -> Case:
        follows, allows = _follows(case, ref, pinned), partial(at.said, ALLOW_DELETE)
        said = {**ref.as_kept(), "commit": str(at.head or at.served)}
        return case._replace(content=found, sourced=Sourced(said, follows, there=True, allows=allows))

    def _held(
        self, case: Case, place: WorkspaceDir, ref: SourceRef, problems: list[tuple[str, str]], pinned: str = ""
    ) -> Case:
        field = pins.FIELD if pinned else FIELD
        line = self._sources.line_in_workspace(case.tree, place, field)
        errors = (LayoutError(place.manifest_path, line, 0, f"{field}: {text}", hint) for text, hint in problems)
        content = self._as_served.of(case) or self._sources.absent(case.tree, place)
        sourced = Sourced(follows=_follows(case, ref, pinned), there=True)
        return case._replace(content=content, sourced=sourced, problems=(*case.problems, *errors))


def _follows(case: Case, ref: SourceRef, pinned: str) -> dict[str, str]:
    """With what it is pinned to, and how far those are that are below it there, in the directory that is named."""
    follows = case.record.follows if case.record is not None else {}
    known = follows.get(GRAFTED) if follows.get("path", "") == ref.path else None
    return {**ref.as_kept(), **({PINNED: pinned} if pinned else {}), **({GRAFTED: known} if known else {})}


def _path_of(there: ContentTree, top: WorkspaceDir, path: str, directory: str) -> str:
    """The path of the workspace that a directory is, below the one at `path`."""
    at, steps = top.directory, directory[len(top.directory) + 1 :] if top.directory else directory
    for name in steps.split("/"):
        at = joined(at, name)
        tree = there.repo.tree_at(there.tree_id, at)
        if tree is not None and there.look(tree, at, there.above(at)).markers:
            path = paths.join(path, named(name))
    return path

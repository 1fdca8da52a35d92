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
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.identity import logical_cluster_name
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.errors import LayoutError
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.tree import WorkspaceDir, joined, named
from reconciler.loading.case import Case, Sourced, was_served
from reconciler.loading.heads import ALLOW as ALLOW_REWRITE
from reconciler.loading.pins import AsServed
from reconciler.loading.remotes import Remotes
from reconciler.loading.site import SeenHead, Site
from reconciler.loading.sources import Content
from reconciler.plan.deletions import ALLOW as ALLOW_DELETE
from reconciler.repository import trailers
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import same_place, source_name

FIELD = "spec.source"
GRAFTED = "grafted"
"""See WorkspaceRecord.follows."""
_COMMITS, _SAYING = 1000, 20
"""Of what is new in a source, how many commits are looked at for what they allow, and how many of those that say it."""
_FILES = 3
_STAYS = "nothing is deleted for that"


class SourceHead:
    """One source, as it is judged for one workspace. `served`: the commit of it that is served, NONE for none;
    `is_same_branch`: whether it came from the same branch. Of another one, which the fleet names, nobody asks more."""

    def __init__(
        self,
        ref: SourceRef,
        repo: Repository | None,
        head: CommitRef,
        served: CommitRef,
        *,
        is_same_branch: bool = True,
    ) -> None:
        self.ref, self.repo, self.head, self.served = ref, repo, head, served
        self.is_same_branch = is_same_branch

    @property
    def is_here(self) -> bool:
        """Whether there is something to judge."""
        commit = self.head or (self.served if self.is_same_branch else NONE)
        return self.repo is not None and bool(commit) and self.repo.has(commit.id)

    @property
    def is_new(self) -> bool:
        return self.head != self.served

    def said(self, trailer: str) -> set[str]:
        """The values of a trailer in what is new."""
        if self.repo is None or not self.is_new:
            return set()
        return trailers.said(self.repo, self.head.id, self.served.id, trailer, _COMMITS, _SAYING)

    def against(self) -> tuple[str, str] | None:
        """Why the head does not follow what is served, and what to do."""
        repo, head, served = self.repo, self.head, self.served
        if repo is None or not served or not self.is_same_branch or repo.is_ancestor(served.id, head.id):
            return None
        if served.id in self.said(ALLOW_REWRITE):
            return None
        allow = f"git commit --allow-empty -m 'Take it' -m '{ALLOW_REWRITE}: {served.id}'"
        if repo.is_ancestor(head.id, served.id):
            text = f"went back to {head.id}, behind {served.id}, which is served"
            hint = f"push what it had again; to undo commits, revert them: git revert {head.id:.12}..{served.id:.12}"
            return text, f"{hint}; or push on top of it: {allow}"
        text = f"was rewritten: {head.id} does not contain {served.id}, which is served"
        return text, f"to have it followed, push on top of it: {allow}"


class SourcedContent:
    """Of one step, which sees one head of each source."""

    def __init__(self, site: Site, as_served: AsServed) -> None:
        self._site, self._sources, self._as_served = site, site.sources, as_served
        self._heads: dict[tuple[str, str], str] = {}

    def applied(self, case: Case, place: WorkspaceDir, ref: SourceRef) -> Case:
        """The case with where its content is read, and what is wrong with that."""
        remotes, known = self._site.remotes, case.recorded
        if known is not None and was_served(known) and self._is_of(case, ref, known.summary.content):
            return self._returning(case, place, ref, known.summary.content)
        if remotes is None:
            return self._unasked(case, place, ref)
        problems = [*self._misplaced(case, place, ref, remotes)]
        at = self._head(case, ref, remotes)
        if remotes.patient and not problems and not at.is_here:
            return self._unasked(case, place, ref)
        found = None
        if not problems:
            found = self._content(case, ref, at, problems)
        if found is not None and case.recorded is None:
            self._site.heads[case.path] = SeenHead(ref, at.head or at.served, found)
        if found is not None:
            problems += self._against_content(case, found)
        if problems and found is not None:
            found = None
        if found is None:
            return self._held(case, place, ref, problems)
        return self._with(case, ref, at, found)

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
        if found is not None or remotes is None:
            return self._with(case, ref, at, found or self._sources.absent(case.tree, place))
        head = self._head(case, ref, remotes).head
        at = SourceHead(ref, self._repository(served.repository), head, served)
        if at.repo is None or not head or not at.repo.has(head.id):
            text = f"{served.id:.10} of {ref}, which was served, is not here yet"
            hint = "it comes back once it is fetched: SourceFollowed says how far that is"
            return self._held(case, place, ref, [(text, hint)])
        problems: list[tuple[str, str]] = []
        found = self._found(case, ref, at, problems)
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
            more = f" and {len(own) - _FILES} more" if len(own) > _FILES else ""
            text = f"its content comes from {ref}, and there are manifests beside it: {', '.join(own[:_FILES])}{more}"
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
        if not at.is_here:
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
            problems.append((f"{ref} {why[0]}; {_STAYS}", why[1]))
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
        program = there.program(found.directory)
        for each in there.markers(found.directory):
            marker = joined(found.directory.directory, each.name)
            text = f"{marker} stands where the workspace's own would, which is the fleet's"
            yield text, "take it out, or put it into a directory of its own: it is a workspace below this one then"
        if program:
            hint = "commit what it makes, as files"
            yield f"{program} is there, and nothing is rendered that comes from another repository", hint
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

    def _with(self, case: Case, ref: SourceRef, at: SourceHead, found: Content) -> Case:
        said, allows = {**ref.as_kept(), "commit": str(at.head or at.served)}, partial(at.said, ALLOW_DELETE)
        follows = _follows(case, ref)
        return case._replace(content=found, sourced=Sourced(said, follows, there=True, allows=allows))

    def _held(self, case: Case, place: WorkspaceDir, ref: SourceRef, problems: list[tuple[str, str]]) -> Case:
        line = self._sources.line_in_workspace(case.tree, place, FIELD)
        errors = (LayoutError(place.manifest_path, line, 0, f"{FIELD}: {text}", hint) for text, hint in problems)
        content = self._as_served.of(case) or self._sources.absent(case.tree, place)
        sourced = Sourced(follows=_follows(case, ref), there=True)
        return case._replace(content=content, sourced=sourced, problems=(*case.problems, *errors))


def _follows(case: Case, ref: SourceRef) -> dict[str, str]:
    """With how far those are that are below it there."""
    known = case.record.follows.get(GRAFTED) if case.record is not None else None
    return {**ref.as_kept(), **({GRAFTED: known} if known else {})}


def _path_of(there: ContentTree, top: WorkspaceDir, path: str, directory: str) -> str:
    """The path of the workspace that a directory is, below the one at `path`."""
    at, steps = top.directory, directory[len(top.directory) + 1 :] if top.directory else directory
    for name in steps.split("/"):
        at = joined(at, name)
        tree = there.repo.tree_at(there.tree_id, at)
        if tree is not None and there.look(tree, at, there.above(at)).markers:
            path = paths.join(path, named(name))
    return path

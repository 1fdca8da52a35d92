"""The workspace trees of commits, opened once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from apiserver.model import commits, paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.registry.tree import FleetRecord
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.errors import BadFile
from reconciler.layout.grafts import BORDER, NO_GRAFTS, OF, Graft, GraftKey, Grafts
from reconciler.layout.grouping import Grouping
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import declaration
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository, TreeEntry
from reconciler.repository.repositories import Repositories

Claims = frozenset[tuple[str, str]]

Said = Mapping[str, Mapping[str, str]]
"""See FleetRecord.grafts."""

_KEPT, _EACH = 64, 512 * 1024
_SAYING = 4096
"""Workspace.yamls of which it is remembered whether they say a source."""


class Trees:
    """`at(commit)` is cheap: a tree is read where it is looked at.

    `claims`: the directories that lost their workspace.yaml and hold manifests still, as of the served commit. Where
    the file is there, or the directory is not, they mean nothing; in the tree of an earlier commit others counted.
    `grafts`: what tenants' repositories have below their workspaces, as it is served. `known`: the directories of
    workspaces that are known to be below one (its logical cluster and directory) in a tenant's repository (its name);
    asked where nothing of that is here. Those that are served from another one, which the source was before, are none.
    `displaced`: by their paths the workspaces below that one there whose directories are others' by now, and where in
    its content those are; asked as well where nothing is here.
    """

    def __init__(self, repositories: Repositories) -> None:
        self.repositories = repositories
        self._grouping: dict[str, Grouping] = {}
        self._open: OrderedDict[tuple[CommitRef, Claims, frozenset[tuple[str, GraftKey]]], WorkspaceTree]
        self._open = OrderedDict()
        self._theirs: OrderedDict[CommitRef, ContentTree] = OrderedDict()
        self._saying: dict[str, bool] = {}
        self._here: set[CommitRef] = set()
        self._recorded: Said = {}
        self.known: Callable[[str, str, str], Iterable[str]] = lambda *_: ()
        self.displaced: Callable[[str], Mapping[str, str]] = lambda _: {}
        self.claims, self.grafts = MappingProxyType({}), NO_GRAFTS
        self._carried: dict[CommitRef, Grafts] = {}

    def aside(self, repositories: Repositories) -> Trees:
        """Trees of other repositories that know what these do. What is found out there stays there."""
        out, known = Trees(repositories), self._grouping.get(NONE.repository)
        if known is not None:
            out._grouping[NONE.repository] = known.aside(repositories.own)
        return out

    def stand(self, fleet: FleetRecord) -> None:
        """Goes by what is served."""
        self.claims = fleet.claims
        if fleet.grafts or self._recorded:
            self.grafts, self._recorded = self.grafted(fleet.grafts), fleet.grafts

    def carry(self, commit: CommitRef, places: Mapping[str, str]) -> None:
        """A commit moves workspaces that have sources: what is below them there stands elsewhere with it. `places`: by
        their logical clusters, their directories then."""
        said = {graft.said[OF]: dict(graft.said) for graft in self.grafts.by_directory.values()}
        self._carried[commit] = self.grafted(
            {of: {**each, "directory": places.get(of, each["directory"])} for of, each in said.items()}
        )

    def settle(self) -> None:
        """Such a commit is taken, or is not."""
        self._carried.clear()

    def at_commit(self, commit: CommitRef) -> Grafts:
        """Those that count there: the standing ones, but where it moves some."""
        return self._carried.get(commit, self.grafts)

    def grafted(self, said: Said) -> Grafts:
        """Of what is recorded, or is to be."""
        found = (self.graft(each) for each in (self._with_cluster(of, said[of]) for of in said))
        return Grafts({graft.directory: graft for graft in found}, self._has_source)

    def graft(self, said: Mapping[str, str], of: Callable[[frozenset[str]], frozenset[str]] = frozenset) -> Graft:
        """`said`: see FleetRecord.grafts, with the logical cluster. `of`: of the directories that are known those that
        count, where nothing is here."""
        commit, directory, theirs = commits.parse(said["commit"]), said["directory"], said.get("path", "")
        if self._is_here(commit):
            return Graft(directory, GraftKey(commit, theirs), said, lambda: self._content(commit))
        known = of(frozenset(self.known(said[OF], directory, commit.repository)))
        return Graft(directory, GraftKey(commit, theirs, known), said, None)

    def served_with(self, source: Mapping[str, str], path: str, directory: str, commit: CommitRef = NONE) -> Grafts:
        """Those of a commit of the fleet (NONE: the standing ones), but that a workspace in a tenant's repository is
        there as it is served. `source`: what its record says; `directory`: its own, as of the fleet's tree, or none of
        that where it is another's by now."""
        grafts = self.at_commit(commit)
        graft = grafts.of(source.get(OF, ""))
        if graft is None:
            return grafts
        if directory.startswith(f"{graft.directory}/"):
            theirs = f"/{source.get('path', '')}".removesuffix(directory[len(graft.directory) :]).removeprefix("/")
        elif (border := source.get(BORDER)) is not None:
            theirs = border
        else:
            return grafts
        if (str(graft.key.commit), graft.key.theirs) == (source.get("commit"), theirs) or "commit" not in source:
            return grafts
        return grafts.with_(self._as_then({**graft.said, **source, "path": theirs}, path))

    def since(self, commit: CommitRef, path: str, here: WorkspaceTree, border: str | None = None) -> Grafts:
        """The standing ones, but that of the workspace which the one at `path` is below, as that commit has it. `here`:
        the tree in which it stands; `border`: the path of the source then, None: as now."""
        around = (here.plain.find(above) for above in paths.upwards(path) if above != path)
        grafts = (self.grafts.by_directory.get(place.directory) for place in around if place is not None)
        found = next((graft for graft in grafts if graft is not None), None)
        if found is None:
            return self.grafts
        said = {**found.said, "commit": str(commit), **({"path": border} if border is not None else {})}
        return self.grafts.with_(self._as_then(said, path))

    def _as_then(self, said: Mapping[str, str], path: str) -> Graft:
        """One as it was when the workspace at `path` was below it."""
        return self.graft(said, lambda known: self._then(known, said, path))

    def _then(self, known: frozenset[str], said: Mapping[str, str], path: str) -> frozenset[str]:
        """Which directories were those of workspaces when the one at `path` had the directory that is another's by now:
        its own, those of workspaces below it, and around it those alone of which its path tells."""
        stood = {each: f"{said['directory']}/{at}" for each, at in self.displaced(said[OF]).items()}
        if path not in stood:
            return known
        names, around = path.split(":")[:-1], list[str]()
        for directory in sorted((each for each in known if stood[path].startswith(f"{each}/")), key=len, reverse=True):
            if names and directory.rpartition("/")[2] == names[-1]:
                around.append(directory)
                names.pop()
        return frozenset({*around, *(at for each, at in stood.items() if paths.is_within(each, path))})

    def directories_in(self, repository: str) -> dict[str, str]:
        """The directories of a tenant's repository that are those of workspaces, or were and are not anybody else's
        yet."""
        out: dict[str, str] = {}
        for graft in self.grafts.by_directory.values():
            if graft.key.commit.repository == repository:
                inside = f"{graft.directory}/"
                there = {
                    *self.known(graft.said[OF], graft.directory, repository),
                    *(d for d in self.claims if d.startswith(inside)),
                }
                out |= {graft.real(directory): directory for directory in there}
        return out

    def _with_cluster(self, of: str, said: Mapping[str, str]) -> dict[str, str]:
        return {**said, OF: of}

    def _is_here(self, commit: CommitRef) -> bool:
        if commit not in self._here:
            try:
                if not self.repositories.of(commit).has(commit.id):
                    return False
            except RepositoryUnreadable:
                return False
            self._here.add(commit)
        return True

    def _content(self, commit: CommitRef) -> ContentTree:
        """Raises RepositoryUnreadable: from then on it counts as not here."""
        try:
            repo = self.repositories.of(commit)
            tree = repo.commit(commit.id).tree
        except RepositoryUnreadable:
            self._here.discard(commit)
            raise
        found = self._theirs.pop(commit, None)
        if found is None or found.repo is not repo:
            found = ContentTree(repo, tree, Grouping(repo, _EACH))
        self._theirs[commit] = found
        if len(self._theirs) > _KEPT:
            self._theirs.popitem(last=False)
        return found

    def _has_source(self, repo: Repository, path: str, entry: TreeEntry) -> bool:
        """Whether a workspace.yaml says that there is one. Of one that nobody can read all stays as it is."""
        if entry.kind != "blob":
            return True
        if entry.id not in self._saying:
            if len(self._saying) >= _SAYING:
                self._saying.clear()
            try:
                self._saying[entry.id] = declaration(repo.blob(entry.id), path).source is not None
            except BadFile:
                self._saying[entry.id] = True
        return self._saying[entry.id]

    @property
    def claims(self) -> Mapping[str, str]:
        return self._claims

    @claims.setter
    def claims(self, found: Mapping[str, str]) -> None:
        self._claims, self._key = found, frozenset(found.items())

    def at(
        self, commit: CommitRef, claims: Mapping[str, str] | None = None, grafts: Grafts | None = None
    ) -> WorkspaceTree:
        """`claims`, `grafts`: those that counted there, where they are not those of the served commit. Raises
        RepositoryUnreadable where the commit is not there."""
        grafts = self.at_commit(commit) if grafts is None else grafts
        key = commit, self._key if claims is None else frozenset(claims.items()), grafts.digest
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = self.apart(commit, claims, grafts)
            if len(self._open) > _KEPT:
                self._open.popitem(last=False)
        return found

    def apart(
        self, commit: CommitRef, claims: Mapping[str, str] | None = None, grafts: Grafts | None = None
    ) -> WorkspaceTree:
        """The same for one caller: who compares it with a tree that was not served before it completes no other's."""
        repo = self.repositories.of(commit)
        grouping = self._grouping.get(commit.repository)
        if grouping is None:
            grouping = self._grouping[commit.repository] = Grouping(repo)
        found = self._tree(repo, repo.commit(commit.id).tree, self.claims if claims is None else claims, grouping)
        return found.with_grafts(self.grafts if grafts is None else grafts)

    def _tree(self, repo: Repository, tree_id: str, claims: Mapping[str, str], grouping: Grouping) -> WorkspaceTree:
        return WorkspaceTree(repo, tree_id, claims, grouping)

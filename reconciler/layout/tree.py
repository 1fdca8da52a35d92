"""The workspaces of one commit's tree: which directories are workspaces, and which files are whose.

Called by the loader and by `validate`. Reads trees only, never a manifest. A directory with a workspace.yaml is a
workspace, any other only groups; a workspace owns the files below it up to the next workspace. A directory that a
program renders counts as one file. Below a workspace whose content comes from a tenant's repository stand those that
are there, too (grafts). What differs between two trees is compare's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from apiserver.model import paths
from apiserver.model.counts import some_of
from reconciler.layout import ignore
from reconciler.layout.errors import LayoutError
from reconciler.layout.grouping import Grouping, Subdirectories
from reconciler.layout.level import WORKSPACE_FILES, Level, level_of, problem
from reconciler.layout.workspacedir import WorkspaceDir, is_marked, named, workspace_dir
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository, TreeEntry

if TYPE_CHECKING:
    from reconciler.layout.grafts import Graft, Grafts

TOP = "workspaces"
ROOT = "workspaces/root"
_NO_FOLDER = {
    "link": "is a symbolic link, which is not followed",
    "commit": "is a submodule, whose files are in another repository",
}
LONGEST_PATH = 400
"""Characters of a workspace path: it is a key of the store."""
_REMEMBERED = 10_000
_EMPTY = 100_000
"""Directories without a manifest after which a tree has none."""


class WorkspaceTree:
    """The workspaces of a tree.

    `claims` maps directories to the workspace paths that own them although their workspace.yaml is gone: a parent never
    inherits what it leaves behind. `compare.touched` adds to it what it finds; the loader keeps it for the next commit.
    `duplicates` maps a path to its directories where there are several: complete after `workspaces` has been read to
    its end, or for what `compare.touched` named. `renders`: by path, workspaces that `workspaces` found to have a
    directory that is rendered. `grafts`: what tenants' repositories have below their workspaces, None where there is
    none. `folder`: in which the fleet stands, `top` its workspaces/ and `root` the workspace root.
    """

    is_fleets = True
    """Whether its treeplane.yaml counts."""

    def __init__(
        self,
        repo: Repository,
        tree_id: str,
        claims: Mapping[str, str] | None = None,
        grouping: Grouping | None = None,
    ) -> None:
        """`grouping`: what other trees of the repository were found to hold, and what this one will be."""
        self.repo = repo
        self.tree_id = tree_id
        self.folder = repo.folder_at(tree_id)
        self.top, self.root = joined(self.folder, TOP), joined(self.folder, ROOT)
        self._grouping = grouping or Grouping(repo)
        self.claims: dict[str, str] = dict(claims or {})
        self.duplicates: dict[str, list[str]] = {}
        self.renders: dict[str, WorkspaceDir] = {}
        self._stacks: dict[str, ignore.Stack] = {}
        self.grafts: Grafts | None = None
        self._grafted: dict[str, Graft | None] = {}

    def with_grafts(self, grafts: Grafts) -> WorkspaceTree:
        """The same, which shows them, too."""
        self.grafts = grafts if grafts.by_directory else None
        return self

    def regrafted(self, grafts: Grafts) -> WorkspaceTree:
        """The same tree with others."""
        return WorkspaceTree(self.repo, self.tree_id, self.claims, self._grouping).with_grafts(grafts)

    def beside(self, tree_id: str) -> WorkspaceTree:
        """Another tree of the repository, by what it says itself: nobody claims a directory in it."""
        return WorkspaceTree(self.repo, tree_id, grouping=self._grouping)

    def fault(self) -> LayoutError | None:
        """Why the whole tree cannot be served: workspaces/root missing or without a single manifest."""
        tree = self.repo.tree_at(self.tree_id, self.root)
        if tree is None and (absent := self.folder_fault()):
            hint = "put it back; where a commit moved it, have the server serve it there: treeplane up … --path FOLDER"
            return LayoutError(self.folder, 0, 0, f"{absent}; nothing is deleted for that", hint)
        if tree is None:
            return LayoutError(self.root, 0, 0, "is missing; nothing is deleted for that", "put it back")
        if not self._any_manifest(tree):
            return LayoutError(self.root, 0, 0, "holds no manifest; nothing is deleted for that", "put them back")
        return None

    def folder_fault(self) -> str:
        """Why the fleet's folder is no directory, "" where it is one."""
        if self.repo.tree_at(self.tree_id, self.folder) is not None:
            return ""
        entry = self.repo.entry_at(self.tree_id, self.folder)
        return _NO_FOLDER.get(entry.kind, "is a file") if entry is not None else "is missing"

    def _any_manifest(self, tree: str) -> bool:
        """Whether there is one. It is not searched for without end."""
        pending = [(tree, self.root, self.stack(self.top))]
        for _ in range(_EMPTY):
            if not pending:
                return False
            tree, directory, stack = pending.pop()
            level = self.look(tree, directory, stack)
            if level.markers or level.files:
                return True
            pending += [(d.id, f"{directory}/{d.name}", level.stack) for d in reversed(level.directories)]
        return False

    def notices(self) -> list[LayoutError]:
        """What is in `workspaces/` but not in the root workspace, and so is not read."""
        top = self.repo.tree_at(self.tree_id, self.top)
        strays = [e.name for e in self.repo.entries(top) if e.name != "root"] if top else []
        hint = f"a workspace stands in {self.root}/"
        return [LayoutError(f"{self.top}/{name}", 0, 0, "is not read", hint) for name in strays if name != ignore.FILE]

    # --- workspaces

    def workspaces(self, top: WorkspaceDir | None = None) -> Iterator[WorkspaceDir]:
        """Every workspace, a parent before its children; of `top`, it and those below it. Of two with one path only the
        first (see `duplicates`)."""
        tree = top.tree if top is not None else self.repo.tree_at(self.tree_id, self.root)
        if tree is None:
            return
        seen: set[int] = set()  # hashes: a million paths would weigh more than all else here
        directory, above = (top.directory, paths.parent(top.path)) if top is not None else (self.root, None)
        around: WorkspaceDir | None = None
        pending = [(tree, directory, above or "", around, self.stack(directory.rpartition("/")[0]))]
        while pending:
            tree, directory, owner, around, stack = pending.pop()
            level = self.look(tree, directory, stack)
            path = self.boundary(level, directory, owner)
            if path is not None and self.gives_way(path, directory):
                continue
            if path is not None:
                owner, around = path, self.place(path, directory, tree, level)
                if hash(path) not in seen or len(self.directories(path)) < 2:
                    seen.add(hash(path))
                    yield around
                elif path not in self.duplicates:
                    self.duplicates[path] = sorted(self.directories(path))
            if level.is_rendered and around is not None:
                self.renders[owner] = around
            if level.directories:
                self._remember(directory, level.stack)
            pending += [
                (d.id, f"{directory}/{d.name}", owner, around, level.stack) for d in reversed(level.directories)
            ]

    def find(self, path: str, directory: str = "") -> WorkspaceDir | None:
        """The workspace of that path. `directory`, where it stood before, spares a search of grouping directories."""
        if directory:
            found = self.at(directory)
            if found is not None and found.path == path:
                return found
        return next(self._search(path), None)

    def directories(self, path: str) -> list[str]:
        """Every directory that declares this path. Reads all of its parents' grouping directories."""
        return [found.directory for found in self._search(path)]

    def find_twins(self, path: str) -> None:
        """Completes `duplicates` for a path."""
        found = self.directories(path) if path not in self.duplicates else ()
        if len(found) > 1:
            self.duplicates[path] = sorted(found)

    def at(self, directory: str) -> WorkspaceDir | None:
        """The workspace that a directory is; None when it only groups, is ignored or absent."""
        steps = self._descend(directory)
        return steps if steps is not None and steps.directory == directory else None

    def owner(self, file: str) -> WorkspaceDir | None:
        """The workspace that a file belongs to, as far as its directory says; workspace.yaml counts as the child's."""
        return self._descend(file.rpartition("/")[0])

    def problems(self, workspace: WorkspaceDir) -> list[LayoutError]:
        """What is wrong with a workspace's place: they hold that workspace alone."""
        path, directory = workspace.path, workspace.directory
        out: list[LayoutError] = []
        bad = next((s for s in path.split(":") if not paths.is_name(s)), None)
        if bad is not None:
            hint = "a workspace's name has lower-case letters, digits and -, at most 63, and begins and ends without -"
            out.append(LayoutError(directory, 0, 0, f"{bad!r} cannot be the name of a workspace", hint))
        if len(path) > LONGEST_PATH:
            out.append(LayoutError(directory, 0, 0, f"the workspace path has more than {LONGEST_PATH} characters"))
        if workspace.manifest is not None:
            refused = problem(workspace.manifest_path, workspace.manifest)
            if refused is not None:
                out.append(refused)
        for name in workspace.spare:
            message = f"stands beside {workspace.manifest_path}"
            out.append(LayoutError(f"{directory}/{name}", 0, 0, message, "a workspace has one manifest; remove one"))
        if directory in self.claims and workspace.manifest is None:
            message = f"was removed, but manifests remain below it: {some_of(self.leftovers(workspace), 3)}"
            out.append(LayoutError(workspace.manifest_path, 0, 0, message, "remove or move them too, or put it back"))
        for other in self.duplicates.get(path, ()):
            others = ", ".join(d for d in self.duplicates[path] if d != other)
            message = f"is the workspace {path}, and so is {others}"
            out.append(LayoutError(other, 0, 0, message, "rename one of the directories"))
        return out

    # --- files

    def files(self, workspace: WorkspaceDir) -> Iterator[tuple[str, TreeEntry]]:
        """The workspace's own manifests with their paths, directories that are rendered, and what `problem` refuses;
        workspace.yaml is not one."""
        if workspace.theirs:
            graft = self.graft_of(workspace.directory)
            yield from graft.files(workspace) if graft is not None else ()
            return
        if workspace.files is not None:
            yield from ((joined(workspace.directory, entry.name), entry) for entry in workspace.files)
            return
        stack = self.above(workspace.directory)
        level = self.look(workspace.tree, workspace.directory, stack)
        if self.grafts is not None:
            level = level._replace(directories=[sub for sub in level.directories if not is_marked(sub.id)])
        yield from self._own(level, workspace.directory)

    def leftovers(self, workspace: WorkspaceDir) -> list[str]:
        """All manifests below a directory, nested workspaces included."""
        stack = self.stack(workspace.directory.rpartition("/")[0])
        return list(self.manifests_below(workspace.tree, workspace.directory, stack))

    def manifests_below(self, tree: str, directory: str, stack: ignore.Stack) -> Iterator[str]:
        level = self.look(tree, directory, stack)
        for entry in (*level.markers, *level.files):
            yield f"{directory}/{entry.name}"
        for sub in level.directories if not level.is_rendered else ():
            yield from self.manifests_below(sub.id, f"{directory}/{sub.name}", level.stack)

    # --- directories that are rendered

    def border(self, workspace: WorkspaceDir) -> str:
        """The directory out of which nothing is seen by what renders for a workspace, but what is shared."""
        return workspace.directory

    def rendered(self, workspace: WorkspaceDir) -> Iterator[tuple[str, TreeEntry]]:
        """The outermost directories of a workspace that are rendered, as `files` names them."""
        yield from ((path, entry) for path, entry in self.files(workspace) if entry.kind == "rendered")

    def all_below(self, directory: str) -> Iterator[tuple[str, TreeEntry]]:
        """Every file that a directory of a workspace holds, ignored ones too, up to the next workspaces, which are
        named as what they are: trees. Its own workspace.yaml is left out. Nothing where there is no directory."""
        tree = self.repo.tree_at(self.tree_id, directory)
        if tree is None:
            return
        level = self._markers(tree, directory, self.above(directory))
        own = {entry.name for entry in level.markers} if self.at(directory) is not None else set()
        for entry in self.repo.entries(tree):
            if entry.name not in own:
                yield from self._below(joined(directory, entry.name), entry, level.stack)

    def _below(self, path: str, entry: TreeEntry, stack: ignore.Stack) -> Iterator[tuple[str, TreeEntry]]:
        if entry.kind != "tree":
            yield path, entry
            return
        level = self._markers(entry.id, path, stack)
        if self.boundary(level, path, "") is not None and self.at(path) is not None:
            yield path, entry
            return
        for each in self.repo.entries(entry.id):
            yield from self._below(f"{path}/{each.name}", each, level.stack)

    # --- directories

    def look(self, tree: str, directory: str, stack: ignore.Stack) -> Level:
        """One directory. `stack` are the rules of the directory above."""
        if self.grafts is None:
            return self.level(tree, directory, stack, self.repo.entries(tree))
        if is_marked(tree):
            graft = self.graft_of(directory)
            return graft.level(tree, directory) if graft is not None else Level(tree, stack, [], [], [])
        level, graft = self.level(tree, directory, stack, self.repo.entries(tree)), self.graft_at(directory)
        if graft is not None:
            ours = {entry.name for entry in self.repo.entries(tree) if entry.kind == "tree"}
            theirs = graft.level(graft.top, directory).directories
            level.directories.extend(each for each in theirs if each.name not in ours)
        return level

    def level(self, tree: str, directory: str, stack: ignore.Stack, entries: Sequence[TreeEntry]) -> Level:
        """The same, of which these entries count."""
        rules = next((e for e in entries if e.name == ignore.FILE and e.kind == "blob"), None)
        if rules is not None:
            stack = (*stack, self._rules(directory, rules))
        return level_of(tree, directory, stack, entries)

    def boundary(self, level: Level, directory: str, owner: str) -> str | None:
        """The path of the workspace that begins in this directory, None when it only groups."""
        if directory == self.root:
            return paths.ROOT
        if level.markers:
            return paths.join(owner, named(directory.rpartition("/")[2]))
        return self.claims.get(directory)

    # --- what tenants' repositories have

    def graft_at(self, directory: str) -> Graft | None:
        """That which stands below the workspace in a directory."""
        if self.grafts is None or directory not in self.grafts.by_directory:
            return None
        if directory not in self._grafted:
            self._grafted[directory] = self.grafts.at(self, directory)
        return self._grafted[directory]

    def graft_of(self, directory: str) -> Graft | None:
        """That to which a directory belongs; None for those of the fleet's own repository."""
        if self.grafts is None:
            return None
        at, below = directory, ""
        while at:
            at, _, below = at.rpartition("/")
            graft = self.graft_at(at)
            if graft is not None:
                tree = self.repo.tree_at(self.tree_id, at)
                ours = self.repo.pick(tree, (below,)).get(below) if tree is not None else None
                return graft if ours is None or ours.kind != "tree" else None
        return None

    def gives_way(self, path: str, directory: str) -> bool:
        """Whether a tenant's directory declares a workspace that one of the fleet's own directories is."""
        graft = self.graft_of(directory)
        if graft is None:
            return False
        here = self.repo.tree_at(self.tree_id, graft.directory)
        if here is None or not any(entry.kind == "tree" for entry in self.repo.entries(here)):
            return False
        return bool(self.plain.directories(path))

    def place(self, path: str, directory: str, tree: str, level: Level, *, whole: bool = True) -> WorkspaceDir:
        """The workspace that begins in a directory. See workspace_dir."""
        found = workspace_dir(path, directory, tree, level, whole=whole)
        graft = self.graft_of(directory) if is_marked(tree) else None
        return found._replace(theirs=graft.real(directory), files=None) if graft is not None else found

    @property
    def plain(self) -> WorkspaceTree:
        """What the fleet's own repository has of it."""
        if self.grafts is None:
            return self
        out = WorkspaceTree(self.repo, self.tree_id, grouping=self._grouping)
        out.claims = self.claims
        return out

    def above(self, directory: str) -> ignore.Stack:
        """The ignore rules that hold for a directory by those around it."""
        return self.stack(directory.rpartition("/")[0]) if directory else ()

    def stack(self, directory: str) -> ignore.Stack:
        """The ignore rules that hold for what is in a directory."""
        found = self._stacks.get(directory)
        if found is not None:
            return found
        graft = self.graft_of(directory)
        if graft is not None:
            return graft.stack(directory)
        above = self.stack(directory.rpartition("/")[0]) if directory not in ("", self.folder) else ()
        tree = self.repo.tree_at(self.tree_id, directory)
        rules = self.repo.pick(tree, (ignore.FILE,)).get(ignore.FILE) if tree is not None else None
        stack = (*above, self._rules(directory, rules)) if rules is not None and rules.kind == "blob" else above
        self._remember(directory, stack)
        return stack

    def _remember(self, directory: str, stack: ignore.Stack) -> None:
        if len(self._stacks) >= _REMEMBERED:
            self._stacks.clear()
        self._stacks[directory] = stack

    def _rules(self, directory: str, entry: TreeEntry) -> ignore.Rules:
        return ignore.rules(directory, entry.id, self.repo.blob(entry.id))

    def _own(self, level: Level, directory: str) -> Generator[tuple[str, TreeEntry], None, bool]:
        """Returns whether there are none, by nobody's claim."""
        for entry in level.files:
            yield joined(directory, entry.name), entry
        if not level.directories or level.is_rendered:
            return not level.files
        found = self._subdirectories(level, directory)
        own: set[str] = set()
        for sub in level.directories:
            if sub.name in found.groups and sub.name not in found.foreign:
                below = joined(directory, sub.name)
                inner = self.look(sub.id, below, level.stack)
                if self.boundary(inner, below, "") is not None or not (yield from self._own(inner, below)):
                    own.add(sub.name)
        foreign = found.groups - own
        if foreign != found.foreign:
            self._note(level, directory, found._replace(foreign=foreign))
        return not level.files and not own

    def _subdirectories(self, level: Level, directory: str) -> Subdirectories:
        """Those of a level, none of them unknown."""
        theirs = [sub for sub in level.directories if is_marked(sub.id)] if self.grafts is not None else []
        if theirs:
            looked = ((sub.name, self.look(sub.id, joined(directory, sub.name), ())) for sub in theirs)
            more = frozenset(name for name, inner in looked if not inner.markers)
            ours = [sub for sub in level.directories if not is_marked(sub.id)]
            found = self._subdirectories(level._replace(directories=ours), directory)
            return found._replace(groups=found.groups | more)
        known = self._grouping.look(directory, level.tree, level.stack, level.directories)
        if not known.unknown:
            return known
        opened = ((sub.name, self.look(sub.id, joined(directory, sub.name), level.stack)) for sub in known.unknown)
        groups = known.groups.union(name for name, inner in opened if not inner.markers)
        found = Subdirectories(groups, known.foreign, [])
        self._note(level, directory, found)
        return found

    def _note(self, level: Level, directory: str, found: Subdirectories) -> None:
        self._grouping.note(directory, level.tree, level.stack, found, len(level.directories))

    def has(self, directory: str) -> bool:
        """Whether there is such a directory, ignored or not."""
        if self.repo.tree_at(self.tree_id, directory) is not None:
            return True
        graft = self.graft_of(directory)
        there = graft.tree if graft is not None else None
        return there is not None and graft is not None and there.has(graft.real(directory))

    def _descend(self, directory: str) -> WorkspaceDir | None:
        """The innermost workspace on the way down to a directory; None when the way is absent or ignored."""
        if directory != self.root and not directory.startswith(f"{self.root}/"):
            return None
        current, tree = self.top, self.repo.tree_at(self.tree_id, self.top)
        found: WorkspaceDir | None = None
        for part in directory[len(self.top) + 1 :].split("/"):
            step = self._step(tree, current, part) if tree is not None else None
            stack = self.stack(current)
            current = f"{current}/{part}"
            if step is None:
                return None
            tree = step.id
            level = self._markers(tree, current, stack)
            path = self.boundary(level, current, found.path if found else "")
            if path is not None and self.gives_way(path, current):
                return None
            if path is not None:
                found = self.place(path, current, tree, level, whole=False)
        return found

    def _step(self, tree: str, directory: str, name: str) -> TreeEntry | None:
        """A subdirectory that is not ignored."""
        if is_marked(tree):
            graft = self.graft_of(f"{directory}/{name}")
            return graft.subdirectory(tree, directory, name) if graft is not None else None
        found = self.repo.pick(tree, (name,)).get(name)
        if found is not None and found.kind == "tree":
            ignored = ignore.ignored(self.stack(directory), f"{directory}/{name}", directory=True)
            return found if not ignored else None
        graft = self.graft_at(directory)
        return graft.subdirectory(graft.top, directory, name) if graft is not None else None

    def _markers(self, tree: str, directory: str, above: ignore.Stack) -> Level:
        """As `look`, for the workspace's manifest only: a wide directory is not read whole."""
        if is_marked(tree):
            return self.look(tree, directory, above)
        picked = self.repo.pick(tree, (*WORKSPACE_FILES, ignore.FILE))
        rules = picked.pop(ignore.FILE, None)
        stack = (*above, self._rules(directory, rules)) if rules is not None and rules.kind == "blob" else above
        self._remember(directory, stack)
        markers = [e for e in picked.values() if e.kind != "tree"]
        return Level(tree, stack, [], [], [e for e in markers if not ignore.ignored(stack, joined(directory, e.name))])

    def _search(self, path: str) -> Iterator[WorkspaceDir]:
        parent, name = paths.parent(path), paths.base(path)
        if parent is None:
            root = self.at(self.root) if path == paths.ROOT else None
            if root is not None:
                yield root
            return
        found: set[str] = set()
        for above in self._search(parent):
            stack = self.stack(above.directory.rpartition("/")[0])
            level = self.look(above.tree, above.directory, stack)
            for child in self._children(level, above, above.directory, name):
                found.add(child.directory)
                yield child
        # A claimed directory may lie inside a workspace that is not its parent.
        for directory in [d for d, owner in self.claims.items() if owner == path and d not in found]:
            claimed = self.at(directory)
            if claimed is not None and claimed.path == path:
                yield claimed

    def _children(self, level: Level, parent: WorkspaceDir, directory: str, name: str) -> Iterator[WorkspaceDir]:
        first = [d for d in level.directories if named(d.name) == name]
        yield from self._children_in(first, level, parent, directory, name)
        if len(first) < len(level.directories):
            groups = self._subdirectories(level, directory).groups
            others = [d for d in level.directories if d.name in groups and named(d.name) != name]
            yield from self._children_in(others, level, parent, directory, name)

    def _children_in(
        self, subs: Iterable[TreeEntry], level: Level, parent: WorkspaceDir, directory: str, name: str
    ) -> Iterator[WorkspaceDir]:
        for sub in subs:
            below = f"{directory}/{sub.name}"
            inner = self.look(sub.id, below, level.stack)
            path = self.boundary(inner, below, parent.path)
            if path is None:
                yield from self._children(inner, parent, below, name)
            elif path == paths.join(parent.path, name) and not self.gives_way(path, below):
                yield self.place(path, below, sub.id, inner)

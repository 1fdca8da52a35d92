"""What differs between the workspaces of two trees, at the cost of the difference.

Called by the loader for each commit. Directories with equal ids, equal owners and equal ignore rules are not opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.model import paths
from reconciler.layout import ignore
from reconciler.layout.errors import BadFile
from reconciler.layout.grafts import NO_GRAFTS
from reconciler.layout.level import RENDERED_BY, WORKSPACE_FILES, Level
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.weight import MOST_ADDED, too_heavy, weigh
from reconciler.layout.whereabouts import Whereabouts
from reconciler.layout.workspacedir import WorkspaceDir, is_marked, named
from reconciler.repository.difference import FileChange
from reconciler.repository.folder import joined
from reconciler.repository.objects import TreeEntry

Known = Callable[[str], Collection[str] | None]
"""The directories in which a path was found before; None when that is not known, which makes it be searched."""


_SMALL = 1024
"""Trees of small workspaces that are remembered."""
_TELLING = (*WORKSPACE_FILES, *RENDERED_BY, ignore.FILE)
"""What a directory says of itself and of all that is in it."""


@dataclass(slots=True)
class Touched:
    """Workspace paths by what became of them; each is in one of the sets at most.

    `changed`: own manifests, the workspace.yaml or the directory; also where the workspace.yaml is gone but manifests
    remain, which the workspace still owns (see WorkspaceTree.claims). `stirred`: workspaces that both trees have, in
    whose own directories anything differs, ignored and other files included: what is rendered may be made of these, and
    of what stands outside of all workspaces (inputs). `renders`: those of the new tree that were seen to have a
    directory that is rendered. `places`: the workspaces of the new tree that
    were come across, so that they need not be searched for. `left`: those of the old tree whose directories are no
    longer theirs.
    """

    changed: set[str] = field(default_factory=set)
    appeared: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    stirred: set[str] = field(default_factory=set, compare=False)
    renders: set[str] = field(default_factory=set, compare=False)
    places: Whereabouts = field(default_factory=Whereabouts, compare=False)
    left: Whereabouts = field(default_factory=Whereabouts, compare=False)

    def __or__(self, other: Touched) -> Touched:
        """What became of them since either of two commits. Where only one of these had a workspace, it goes or changes
        all the same. `left` stays that of the first."""
        removed, appeared = self.removed | other.removed, self.appeared | other.appeared
        changed = (self.changed | other.changed) - appeared - removed
        stirred, renders = self.stirred | other.stirred, self.renders | other.renders
        return Touched(changed, appeared, removed, stirred, renders, self.places | other.places, self.left)


class _Side(NamedTuple):
    """One directory in one of the trees: None as tree where it is absent there. `source`: of one in a tenant's
    repository, the workspace that has its content from there: what it owns of that is looked at elsewhere."""

    tree: str | None
    owner: str
    stack: ignore.Stack
    source: str = ""

    @staticmethod
    def below(sub: TreeEntry | None, above: Level | None) -> _Side:
        """A subdirectory of a directory that one workspace owns."""
        return _Side(sub.id if sub is not None and above is not None else None, "", above.stack if above else ())


def touched(new: WorkspaceTree, old: WorkspaceTree, known: Known | None = None) -> Touched:
    """Which workspaces a commit touches. Completes `new.claims` and `new.duplicates`.

    Raises BadFile when `new` has no root (then nothing was removed, something went wrong), or adds more than anybody
    can walk.
    """
    fault = new.fault()
    if fault is not None:
        raise BadFile([fault])
    return _Comparison(new, old, known).run()


def changes(
    new: WorkspaceTree, workspace: WorkspaceDir, old: WorkspaceTree, old_workspace: WorkspaceDir | None
) -> Iterator[FileChange]:
    """The own files of `workspace` that differ from those of `old_workspace` (None: all are new).

    A file that another workspace owned before, because a workspace.yaml came or went between them, is created here and
    deleted there. A directory that is rendered is named once, where anything below it differs; what else it is made of
    is not looked at.
    """
    if old_workspace is None:
        yield from (FileChange(path, None, entry) for path, entry in new.files(workspace))
        return
    if workspace.directory != old_workspace.directory:
        yield from (FileChange(path, entry, None) for path, entry in old.files(old_workspace))
        yield from (FileChange(path, None, entry) for path, entry in new.files(workspace))
        return
    was, now = old.above(workspace.directory), new.above(workspace.directory)
    if (
        workspace.tree == old_workspace.tree
        and ignore.same(was, now)
        and not _claims_differ(new, old, workspace.directory)
    ):
        return
    sides = _Side(old_workspace.tree, "", was), _Side(workspace.tree, "", now)
    old_level, new_level, _ = _levels(old, new, workspace.directory, *sides)
    yield from _own_changes(new, old, workspace.directory, new_level, old_level)


def _own_changes(
    new: WorkspaceTree, old: WorkspaceTree, directory: str, now: Level | None, was: Level | None
) -> Iterator[FileChange]:
    """Of one directory that the workspace owns in both trees, or in the one whose level is given."""
    before = {e.name: e for e in was.files} if was else {}
    after = {e.name: e for e in now.files} if now else {}
    workspaces_differ = bool(was and was.is_rendered and now and now.is_rendered) and _claims_differ(
        new, old, directory
    )
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name) or workspaces_differ:
            yield FileChange(joined(directory, name), before.get(name), after.get(name))
    old_subs = {e.name: e for e in was.directories} if was and not was.is_rendered else {}
    new_subs = {e.name: e for e in now.directories} if now and not now.is_rendered else {}
    alike = was is not None and now is not None and ignore.same(was.stack, now.stack)
    for name in sorted(old_subs.keys() | new_subs.keys()):
        below = joined(directory, name)
        if alike and old_subs.get(name) == new_subs.get(name) and not _claims_differ(new, old, below):
            continue
        sides = _Side.below(old_subs.get(name), was), _Side.below(new_subs.get(name), now)
        old_level, new_level, _ = _levels(old, new, below, *sides)
        old_level, new_level = _grouping(old, old_level, below), _grouping(new, new_level, below)
        if old_level is not None or new_level is not None:
            yield from _own_changes(new, old, below, new_level, old_level)


def _grouping(tree: WorkspaceTree, level: Level | None, directory: str) -> Level | None:
    """A subdirectory that belongs to the same workspace; None when it is absent or a workspace itself."""
    return level if level is not None and tree.boundary(level, directory, "") is None else None


def _levels(
    old: WorkspaceTree, new: WorkspaceTree, directory: str, was: _Side, now: _Side
) -> tuple[Level | None, Level | None, bool]:
    """A directory in both trees, and whether that is all of it: of a wide one of which nothing but names in it changed
    it is these names, and what tells about the directory itself."""
    narrowed = _narrowed(old, new, directory, was, now)
    if narrowed is not None:
        return (*narrowed, False)
    return (
        old.look(was.tree, directory, was.stack) if was.tree is not None else None,
        new.look(now.tree, directory, now.stack) if now.tree is not None else None,
        True,
    )


def _narrowed(
    old: WorkspaceTree, new: WorkspaceTree, directory: str, was: _Side, now: _Side
) -> tuple[Level, Level] | None:
    if was.tree is None or now.tree is None or was.owner != now.owner or not ignore.same(was.stack, now.stack):
        return None
    if is_marked(was.tree) or is_marked(now.tree) or new.graft_at(directory) or old.graft_at(directory):
        return None
    alike = new.repo is old.repo and not _claims_differ(new, old, directory)
    found = new.repo.differing(was.tree, now.tree, _TELLING) if alike else None
    if found is None:
        return None
    old_level, new_level = (
        tree.level(side.tree or "", directory, side.stack, entries)
        for tree, side, entries in zip((old, new), (was, now), found, strict=True)
    )
    alike = old_level.markers == new_level.markers and old_level.is_rendered == new_level.is_rendered
    return (old_level, new_level) if alike and ignore.same(old_level.stack, new_level.stack) else None


def _claims_differ(new: WorkspaceTree, old: WorkspaceTree, directory: str) -> bool:
    if not new.claims and not old.claims:
        return False
    inside = directory + "/"
    return any(
        new.claims.get(claim) != old.claims.get(claim)
        for claim in new.claims.keys() | old.claims.keys()
        if claim == directory or claim.startswith(inside)
    )


def _below(tree: WorkspaceTree, directory: str, name: str, side: _Side) -> _Side:
    """The side of a subdirectory: in a tenant's repository the rules of that one hold."""
    if side.tree is None or not is_marked(side.tree):
        return side._replace(source="")
    graft = tree.graft_of(f"{directory}/{name}")
    stack = graft.stack(directory) if graft is not None else side.stack
    return side._replace(stack=stack, source=side.source or side.owner)


class _Directories:
    """Directories by workspace path. There is nearly always one, and a set for each would weigh more than all else."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._more: dict[str, set[str]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._first

    def paths(self) -> Collection[str]:
        return self._first.keys()

    def add(self, path: str, directory: str) -> None:
        if self._first.setdefault(path, directory) != directory:
            self._more.setdefault(path, set()).add(directory)

    def alone(self, path: str) -> bool:
        """Whether it has one directory."""
        return path in self._first and path not in self._more

    def of(self, path: str) -> set[str]:
        return {self._first[path], *self._more.get(path, ())} if path in self._first else set()


class _Comparison:
    """One run of `touched`. `came` and `gone` hold the directories of paths that one tree has and the other has not,
    `stayed` those that both have."""

    def __init__(self, new: WorkspaceTree, old: WorkspaceTree, known: Known | None) -> None:
        self._new, self._old = new, old
        self._known = known
        self._out = Touched()
        self._came, self._gone, self._stayed = _Directories(), _Directories(), _Directories()
        self._small: dict[str, tuple[str, bool]] = {}
        """By the tree of a workspace: one that has it, and whether it has manifests beside its workspace.yaml."""
        self._added = 0
        self._regrafted = new.grafts.differing(old.grafts or NO_GRAFTS) if new.grafts is not None else frozenset[str]()
        if new.grafts is None and old.grafts is not None:
            self._regrafted = old.grafts.differing(NO_GRAFTS)

    def run(self) -> Touched:
        new, old, out = self._new, self._old, self._out
        was, now = (_Side(tree.repo.tree_at(tree.tree_id, tree.root), "", tree.stack(tree.top)) for tree in (old, new))
        if old.root == new.root:
            self._visit(new.root, was, now)
        else:  # the fleet's folder is called otherwise
            self._visit(old.root, was, _Side(None, "", now.stack))
            self._visit(new.root, _Side(None, "", was.stack), now)
        for path in self._came.paths():
            self._settle(path)
        for path in self._gone.paths():
            if path not in self._came:
                self._settle(path)
        out.changed -= out.appeared
        out.changed -= out.removed
        for path in out.changed:
            self._twins(path)
        return out

    def _visit(self, directory: str, was: _Side, now: _Side) -> None:
        unchanged = was.tree == now.tree and was.owner == now.owner and ignore.same(was.stack, now.stack)
        if unchanged and not _claims_differ(self._new, self._old, directory) and not self._differs_inside(directory):
            return
        old_level, new_level, whole = _levels(self._old, self._new, directory, was, now)
        sides = was.tree, now.tree
        was, old_level = self._as_counts(self._old, directory, was, old_level)
        now, new_level = self._as_counts(self._new, directory, now, new_level)
        self._note_overlaps(was, now, sides)
        old_subs = {e.name: e.id for e in old_level.directories} if old_level else {}
        new_subs = {e.name: e.id for e in new_level.directories} if new_level else {}
        if old_level is not None or directory == self._new.root:
            fresh = [tree for name, tree in new_subs.items() if name not in old_subs]
            self._weigh(directory, [tree for tree in fresh if not is_marked(tree)])
        old_path = self._old.boundary(old_level, directory, was.owner) if old_level else None
        self._claim(directory, old_path, now, new_level)
        new_path = self._new.boundary(new_level, directory, now.owner) if new_level else None
        if old_path is not None and old_path != new_path and old_level is not None and was.tree is not None:
            self._out.left.note(self._old.place(old_path, directory, was.tree, old_level, whole=whole))
        self._note(directory, old_path, new_path, old_level, new_level)
        if new_path is not None and new_level is not None and now.tree is not None:
            place = self._new.place(new_path, directory, now.tree, new_level, whole=whole)
            if self._out.places.note(place) and whole and old_level is None:
                self._note_small(place, new_level)
        old_owner, new_owner = old_path or was.owner, new_path or now.owner
        if old_owner == new_owner and was.tree is not None and now.tree is not None:
            self._out.stirred.add(new_owner)
        self._files(
            old_owner,
            new_owner,
            old_level if old_owner != was.source else None,
            new_level if new_owner != now.source else None,
        )
        old_stack = old_level.stack if old_level else was.stack
        new_stack = new_level.stack if new_level else now.stack
        # In git's order, as a walk of the whole tree: of directories that declare one path the first one counts.
        for name in (*new_subs, *(name for name in old_subs if name not in new_subs)):
            below = f"{directory}/{name}"
            if name not in old_subs and self._is_like_another(below, new_subs[name], new_owner, new_stack):
                continue
            self._visit(
                below,
                _below(self._old, directory, name, _Side(old_subs.get(name), old_owner, old_stack, was.source)),
                _below(self._new, directory, name, _Side(new_subs.get(name), new_owner, new_stack, now.source)),
            )

    def _note_small(self, place: WorkspaceDir, level: Level) -> None:
        """Of a workspace that its tree tells all of, wherever it stands."""
        entries = (*level.files, *level.markers)
        if place.files is None or not level.markers or level.is_rendered or level.stack or is_marked(level.tree):
            return
        if not level.directories and all(entry.kind == "blob" for entry in entries):
            if len(self._small) >= _SMALL:
                self._small.clear()
            self._small[level.tree] = place.path, bool(level.files)

    def _is_like_another(self, directory: str, tree: str, owner: str, stack: ignore.Stack) -> bool:
        """Whether a directory that only the new tree has is a workspace of which another one tells all but its place:
        then it is noted. Where rules or what was left behind may have a say, it is looked at."""
        like = self._small.get(tree) if not stack else None
        if like is None or self._new.claims or self._old.claims or self._new.grafts is not None:
            return False
        other, has_files = like
        path = paths.join(owner, named(directory.rpartition("/")[2]))
        self._came.add(path, directory)
        self._out.places.note_like(path, directory, other)
        if has_files:
            self._out.changed.add(path)
        return True

    def _differs_inside(self, directory: str) -> bool:
        """Whether something of tenants' repositories may differ in a directory that is the same in the fleet's, or in
        a tenant's directory that is the same: what gives way to the fleet's own follows from that."""
        if self._regrafted and any(each == directory or each.startswith(f"{directory}/") for each in self._regrafted):
            return True
        graft = self._new.graft_of(directory) if self._new.grafts is not None else None
        if graft is None:
            return False
        sides = ((self._new.repo, self._new.tree_id), (self._old.repo, self._old.tree_id))
        now, was = (repo.tree_at(tree, graft.directory) for repo, tree in sides)
        return now != was and any(e.kind == "tree" for t in (now, was) if t for e in self._new.repo.entries(t))

    def _note_overlaps(self, was: _Side, now: _Side, there: tuple[str | None, str | None]) -> None:
        """Whoever has something in a repository of his own that gives way to the fleet's in one of the trees alone is
        told. `there`: both trees whether they give way or not."""
        mixed = all(there) and is_marked(there[0] or "") != is_marked(there[1] or "")
        differ = (was.tree != there[0]) != (now.tree != there[1])
        if mixed or differ:
            self._out.changed.update({was.source, now.source} - {""})

    def _as_counts(
        self, tree: WorkspaceTree, directory: str, side: _Side, level: Level | None
    ) -> tuple[_Side, Level | None]:
        """As if it were not there, where it gives way."""
        path = tree.boundary(level, directory, side.owner) if level is not None and is_marked(level.tree) else None
        if path is None or not tree.gives_way(path, directory):
            return side, level
        return side._replace(tree=None), None

    def _weigh(self, directory: str, fresh: list[str]) -> None:
        """What is new in a directory is weighed before it is walked, whole: nothing below it is weighed again."""
        self._added += weigh(self._new.repo, fresh, MOST_ADDED - self._added)
        if self._added > MOST_ADDED:
            raise BadFile([too_heavy(directory, MOST_ADDED)])

    def _claim(self, directory: str, old_path: str | None, now: _Side, level: Level | None) -> None:
        """A directory that was a workspace and has no workspace.yaml now stays one while manifests remain in it."""
        claims = self._new.claims
        path = claims.pop(directory, None) or old_path
        if path is None or path == paths.ROOT or now.tree is None or level is None or level.markers:
            return
        if not is_marked(now.tree):
            self._weigh(directory, [now.tree])
        if any(self._new.manifests_below(now.tree, directory, now.stack)):
            claims[directory] = path
            self._out.changed.add(path)

    def _note(
        self, directory: str, old_path: str | None, new_path: str | None, was: Level | None, now: Level | None
    ) -> None:
        if old_path == new_path:
            if new_path is not None:
                self._stayed.add(new_path, directory)
            if new_path is not None and was is not None and now is not None and was.markers != now.markers:
                self._out.changed.add(new_path)
            return
        if old_path is not None:
            self._gone.add(old_path, directory)
        if new_path is not None:
            self._came.add(new_path, directory)

    def _files(self, old_owner: str, new_owner: str, was: Level | None, now: Level | None) -> None:
        before = was.files if was else []
        after = now.files if now else []
        if now is not None and now.is_rendered:
            self._out.renders.add(new_owner)
        if old_owner == new_owner:
            if before != after:
                self._out.changed.add(new_owner)
            return
        if before and old_owner:
            self._out.changed.add(old_owner)
        if after and new_owner:
            self._out.changed.add(new_owner)

    def _settle(self, path: str) -> None:
        """Whether a path whose directories differ appeared, went, moved or is now declared twice."""
        if self._came.alone(path) and path not in self._gone and path not in self._stayed and self._is_unknown(path):
            self._out.appeared.add(path)  # as nearly all
            return
        came, gone = self._came.of(path), self._gone.of(path)
        others = self._stayed.of(path) | self._others(path, came | gone)
        if others or (came and gone):
            self._out.changed.add(path)
        elif came:
            self._out.appeared.add(path)
        else:
            self._out.removed.add(path)
        self._double(path, came | others)

    def _is_unknown(self, path: str) -> bool:
        """Whether it was nowhere before."""
        before = self._known(path) if self._known is not None else None
        return before is not None and not before

    def _twins(self, path: str) -> None:
        if path not in self._new.duplicates:
            seen = self._came.of(path) | self._stayed.of(path)
            self._double(path, seen | self._others(path, seen))

    def _others(self, path: str, besides: set[str]) -> set[str]:
        """Further directories that declare the path in the new tree."""
        before = self._known(path) if self._known is not None else None
        if before is None or (not before and path not in self._came):
            return set(self._new.directories(path)) - besides
        out = set()
        for directory in before:
            if directory and directory not in besides:
                found = self._new.at(directory)
                if found is not None and found.path == path:
                    out.add(directory)
        return out

    def _double(self, path: str, directories: set[str]) -> None:
        if len(directories) > 1:
            self._new.duplicates[path] = sorted(directories)

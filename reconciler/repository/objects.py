"""Reading git's objects: what other rooms see of a repository.

Called by every module of this room and, as `Repository`, by layout, plan and the loader. Trees are parsed from their
raw bytes: for the many small trees of a fleet that is faster than an object per entry, and ids stay plain text.
Threads may share a Repository for reading; a forked process opens its own.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Literal, NamedTuple
from weakref import finalize

from reconciler.repository import library
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.folder import FILE, joined

Kind = Literal["tree", "blob", "commit", "link", "rendered"]

_KINDS: dict[bytes, tuple[Kind, bool]] = {
    b"40000": ("tree", False),
    b"100644": ("blob", False),
    b"100664": ("blob", False),
    b"100755": ("blob", True),
    b"120000": ("link", False),
    b"160000": ("commit", False),
}
_FILE: tuple[Kind, bool] = ("blob", False)
_COMMIT, _TREE, _BLOB = 1, 2, 3
_WIDE, _TOO_WIDE, _KEPT = 4096, 4 * 1024 * 1024, 8
"""Bytes of a tree from which on, and up to which, its names are remembered when it is asked for again; of how many."""

_NOT_KEPT, _KEPT_DATA = 128 * 1024, 4
"""Bytes of a wide tree from which on they are read anew each time; of how many they are remembered."""

_ENTRY = re.compile(rb"[^ \0]* [^\0]*\0.{20}", re.DOTALL)
"""Of a tree's bytes."""
_PARTS = re.compile(rb"([^ \0]*) ([^\0]*)\0(.{20})", re.DOTALL)

_NARROW, _KEPT_NARROW = 16 * 1024, 512 * 1024
"""Bytes of a tree up to which its entries are remembered, and of all of these."""

_FEW = 64
"""Names of a remembered tree up to which it is taken for one that is not wide, without a look at its bytes."""


class TreeEntry(NamedTuple):
    """One name in a tree. `kind`: "commit" is a submodule, "link" a symbolic link (its blob holds the target);
    "rendered" is never of git but of layout (layout/tree): a file that has a program make the manifests of its
    directory, with the id of that."""

    name: str
    id: str
    kind: Kind
    executable: bool = False


class CommitInfo(NamedTuple):
    """`time` is the committer's, in seconds since 1970; `author` is `Name <mail>`."""

    id: str
    parents: tuple[str, ...]
    tree: str
    time: int
    author: str
    message: str


class Unwritten(NamedTuple):
    """A commit with the objects that are new with it, by their ids (their kind, their bytes), on their way to the disk.
    `written` is done when they are there, or fails."""

    commit: CommitInfo
    objects: Mapping[str, tuple[int, bytes]]
    written: Future[None]


class Repository:
    """A git directory, open for reading. Missing objects raise RepositoryUnreadable."""

    def __init__(self, git_dir: Path | str, folders: tuple[str, ...] = ("",)) -> None:
        """Opens `git_dir`, a bare repository or a work tree's top. Never searches upwards. `folders`: in which the
        fleet stands, and before that, where it stood in commits that are older than its move."""
        self.path = Path(git_dir)
        self.folders = folders
        self._wide: dict[str, dict[str, TreeEntry]] = {}
        self._narrow: dict[str, Sequence[TreeEntry]] = {}
        self._narrow_bytes = 0
        self._asked: tuple[str, ...] = ()
        self._packs: frozenset[str] | None = None
        self._wide_data: dict[str, bytes] = {}
        self._unwritten: Unwritten | None = None
        self._git = library.open_directory(self.path)
        self._opened = _held(self, Path(self._git.path))

    def is_there(self) -> bool:
        """Whether the directory that was opened is still the one under its name."""
        return _file_of(Path(self._git.path)) == self._opened

    def let_go(self) -> bool:
        """Opens the repository anew if packs are gone that were there when this was called last (somebody repacked).
        Whether it did. git's library keeps open what it has once opened, and the disk keeps such a file. Who reads just
        now does so to the end with what was open. Raises RepositoryUnreadable."""
        before, self._packs = self._packs, self._packs_there()
        if before is None or before <= self._packs:
            return False
        self._git = library.open_directory(self.path)
        return True

    @property
    def unwritten(self) -> Unwritten | None:
        """What `read_ahead` was given last."""
        return self._unwritten

    def read_ahead(self, made: Unwritten | None) -> None:
        """From now on what is on its way to the disk is read as if it were there; whoever asks git's library about it
        (what it descends from, who committed it) waits for it. None: nothing is."""
        self._unwritten = made

    def _wait_for(self, *objects: str) -> None:
        """Until none of them is on its way. What cannot be written is absent."""
        made = self._unwritten
        if made is not None and any(each in made.objects for each in objects):
            wait([made.written])

    def _packs_there(self) -> frozenset[str]:
        """Its own and those that it borrows."""
        objects, found = [self.git_dir / "objects"], list[str]()
        with contextlib.suppress(OSError):
            borrowed = (objects[0] / "info" / "alternates").read_text(errors="surrogateescape").splitlines()
            objects += [Path(line) for line in borrowed if line.startswith("/")]
        for directory in objects:
            with contextlib.suppress(OSError), os.scandir(directory / "pack") as names:
                found += [each.path for each in names if each.name.endswith(".pack")]
        return frozenset(found)

    @property
    def git(self) -> library.Handle:
        """The handle itself, for this room's modules only."""
        return self._git

    def require(self) -> None:
        """Looks before something is written. Raises RepositoryUnreadable where the directory has gone since it was
        opened, as one that is moved: git's library would make it again, and what is moved back would find it there."""
        if not (Path(self._git.path) / "HEAD").is_file():
            raise RepositoryUnreadable(f"{self.path} is away", "put it back, or name another")

    @property
    def references(self) -> library.References:
        """All refs: to list, make and delete, for this room's modules only. To look at one, see `reference`."""
        return library.References(self._git)

    def reference(self, name: str) -> library.Reference:
        """For this room's modules only. Raises library.FAILURES."""
        # pygit2 (1.21) never lets go of a name that it is given here: let it be the same one each time.
        return self._git.lookup_reference(sys.intern(name))

    @property
    def git_dir(self) -> Path:
        """Where objects and refs are: of a linked work tree the common directory."""
        directory = Path(self._git.path)
        common = directory / "commondir"
        if common.is_file():
            return (directory / common.read_text().strip()).resolve()
        return directory

    def resolve(self, ref: str) -> str | None:
        """The commit that a ref, branch, tag or (shortened) id names; None if nothing does."""
        try:
            return str(self._git.revparse_single(ref).peel(library.Commit).id)
        except library.FAILURES:
            return None

    def ref(self, name: str) -> str | None:
        """The commit that the full ref `name` points to, by the ref alone (its object may be absent)."""
        try:
            target = self.reference(name).resolve().target
        except library.FAILURES:
            return None
        return str(target)

    def has(self, object_id: str) -> bool:
        self._wait_for(object_id)
        return object_id in self._git

    def commit(self, commit_id: str) -> CommitInfo:
        made = self._unwritten
        if made is not None and made.commit.id == commit_id:
            return made.commit
        found = self._load(commit_id)
        if not isinstance(found, library.Commit):
            raise RepositoryUnreadable(f"{commit_id} is not a commit")
        name, mail = found.author.raw_name, found.author.raw_email
        return CommitInfo(
            id=str(found.id),
            parents=tuple(str(p) for p in found.parent_ids),
            tree=str(found.tree_id),
            time=found.commit_time,
            author=f"{name.decode('utf-8', 'replace')} <{mail.decode('utf-8', 'replace')}>",
            message=found.raw_message.decode("utf-8", "replace"),
        )

    def committer(self, commit_id: str) -> str:
        """The name of who put the commit there, which need not be its author."""
        found = self._load(commit_id)
        return str(found.committer.name) if isinstance(found, library.Commit) else ""

    def trailers(self, commit_id: str) -> dict[str, str]:
        """The trailers of a commit's message, as git reads them; of one that is said twice the last counts."""
        found = self._load(commit_id)
        return dict(found.message_trailers) if isinstance(found, library.Commit) else {}

    def first_parents(self, after: str | None, until: str) -> list[str] | None:
        """Ids from the one that follows `after` up to `until`, oldest first.

        None when `after` is not on the first-parent chain of `until` (the branch was rewritten); with `after` None the
        whole chain.
        """
        chain: list[str] = []
        for commit_id in self._chain(until):
            if commit_id == after:
                return chain[::-1]
            chain.append(commit_id)
        return chain[::-1] if after is None else None

    def root_commit(self, commit_id: str) -> str:
        """The first commit of the first-parent chain."""
        return deque(self._chain(commit_id), maxlen=1)[0]

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `newer` is `older` or descends from it, through any parent."""
        if older == newer:
            return True
        self._wait_for(older, newer)
        try:
            return self._git.descendant_of(newer, older)
        except library.FAILURES:
            return False

    def merge_base(self, one: str, other: str) -> str | None:
        """The best commit that both contain, None where there is none (or it is not here)."""
        self._wait_for(one, other)
        try:
            found = self._git.merge_base(one, other)
        except library.FAILURES:
            return None
        return str(found) if found is not None else None

    def tree_at(self, tree_id: str, path: str) -> str | None:
        """The id of the directory `path` ("" is the tree itself)."""
        if not path:
            return tree_id
        found = self.entry_at(tree_id, path)
        return found.id if found is not None and found.kind == "tree" else None

    def folder_at(self, tree_id: str) -> str:
        """In which of the folders the fleet stands in a commit's tree; the newest where it is in none."""
        if len(self.folders) == 1:
            return self.folders[0]
        there = (each for each in self.folders if self.entry_at(tree_id, joined(each, FILE)) is not None)
        return next(there, self.folders[0])

    def stood_in(self, folders: Iterable[str]) -> None:
        """The fleet stood in these folders, too, before it was moved to that in which it is looked for."""
        self.folders = tuple(dict.fromkeys((self.folders[0], *folders)))

    def fleet_at(self, commit_id: str) -> str:
        """The id of the directory in which the fleet stands in a commit: what is outside of it is nothing to us. Where
        it is gone, of all that there is."""
        tree = self.commit(commit_id).tree
        return self.tree_at(tree, self.folder_at(tree)) or tree

    def entry_at(self, tree_id: str, path: str) -> TreeEntry | None:
        """What stands at `path` below a tree."""
        *directories, last = path.split("/")
        for part in directories:
            step = self.pick(tree_id, (part,)).get(part)
            if step is None or step.kind != "tree":
                return None
            tree_id = step.id
        return self.pick(tree_id, (last,)).get(last)

    def entries(self, tree_id: str) -> Sequence[TreeEntry]:
        """The names of one tree, in git's order."""
        known = self._narrow.get(tree_id)
        if known is not None:
            return known
        data = self.tree_data(tree_id)
        out, end = _entries(data), len(data)
        if end <= _NARROW:
            # The next commit is compared with this one, and shares most of its trees.
            if self._narrow_bytes + end > _KEPT_NARROW:
                self._narrow, self._narrow_bytes = {}, 0
            self._narrow[tree_id] = out
            self._narrow_bytes += end
        return out

    def width(self, tree_id: str) -> int:
        """How many names a tree has. Cheaper than to make its entries."""
        known = self._wide.get(tree_id, self._narrow.get(tree_id))
        return len(known if known is not None else _split(self.tree_data(tree_id)))

    def differing(self, one: str, other: str, besides: Iterable[str]) -> tuple[list[TreeEntry], list[TreeEntry]] | None:
        """Of two wide trees what is not alike in both, and whatever is called as one of `besides`; in git's order. None
        where one of them is not wide, of which `entries` costs no more."""
        known = self._narrow.get(one, self._narrow.get(other))
        if known is not None and len(known) <= _FEW:
            return None
        first, second = self.tree_data(one), self.tree_data(other)
        return None if min(len(first), len(second)) <= _WIDE else _unlike(first, second, besides)

    def unlike(self, one: str, other: str) -> tuple[list[TreeEntry], list[TreeEntry]]:
        """What two trees, wide or not, do not have in common; in git's order."""
        return _unlike(self.raw(one, _TREE), self.raw(other, _TREE), ())

    def subtrees(self, tree_id: str) -> list[tuple[bytes, bytes, bytes]]:
        """Of the directories in a tree the bytes of their entries, their names and their ids; cheaper than `entries` of
        a wide tree."""
        found = tree_parts(self.raw(tree_id, _TREE))
        return [(b"40000 %b\0%b" % (name, i), name, i) for mode, name, i in found if mode == b"40000"]

    def besides(self, tree_id: str, known: Container[bytes], wanted: Container[bytes]) -> list[TreeEntry]:
        """The entries whose bytes are none of `known`, and those with a name of `wanted`."""
        found = _split(self.raw(tree_id, _TREE))
        return _entries(b"".join([e for e in found if e not in known or e[e.index(b" ") + 1 : -21] in wanted]))

    def pick(self, tree_id: str, names: Iterable[str]) -> dict[str, TreeEntry]:
        """Some names of one tree, those that are there. Of a wide tree far cheaper than all its entries."""
        known = self._wide.get(tree_id)
        if known is not None:
            return {name: known[name] for name in names if name in known}
        seen = self._narrow.get(tree_id)
        if seen is not None:
            wished = frozenset(names)
            return {entry.name: entry for entry in seen if entry.name in wished}
        data = self.tree_data(tree_id)
        coded = {name.encode("utf-8", "surrogateescape"): name for name in names}
        # These bytes may also lie inside an id (a submodule's is anybody's choice): they only rule names out.
        wanted = {raw: name for raw, name in coded.items() if b" " + raw + b"\0" in data}
        if not wanted:
            return {}
        if _WIDE < len(data) < _TOO_WIDE and self._asked_before(tree_id):
            known = {entry.name: entry for entry in self.entries(tree_id)}
            self._keep(tree_id, known)
            return {name: known[name] for name in wanted.values() if name in known}
        out: dict[str, TreeEntry] = {}
        for mode, raw_name, oid in raw_entries(data):
            name = wanted.get(raw_name, "")
            if name:
                out[name] = TreeEntry(name, oid.hex(), *_KINDS.get(mode, _FILE))
                if len(out) == len(wanted):
                    break
        return out

    def _asked_before(self, tree_id: str) -> bool:
        """Whether a wide tree is asked for again, as when each of its directories is looked up by its path."""
        before, self._asked = tree_id in self._asked, (*self._asked[-_KEPT:], tree_id)
        return before

    def _keep(self, tree_id: str, known: dict[str, TreeEntry]) -> None:
        # A new dict each time: other threads may be reading the old one.
        kept = list(self._wide.items())[-_KEPT + 1 :]
        self._wide = dict([*kept, (tree_id, known)])

    def tree_data(self, tree_id: str) -> bytes:
        """The bytes of a tree. Those of the last few wide ones are at hand: a commit into one asks for it for each of
        the names that it changes there, and so does who judges it."""
        data = self._wide_data.get(tree_id)
        if data is None:
            data = self.raw(tree_id, _TREE)
            if _WIDE < len(data) < _NOT_KEPT:
                kept = [*self._wide_data.items()][-_KEPT_DATA + 1 :]
                self._wide_data = dict([*kept, (tree_id, data)])
        return data

    def blob(self, blob_id: str) -> bytes:
        return self.raw(blob_id, _BLOB)

    def blob_size(self, blob_id: str) -> int:
        """In bytes, from the object's header alone."""
        self._wait_for(blob_id)
        try:
            return int(self._git.odb.read_header(blob_id)[1])
        except (*library.FAILURES, AttributeError):
            return len(self.blob(blob_id))

    def raw_commit(self, commit_id: str) -> bytes:
        """The bytes of a commit, of which its id is the hash."""
        return self.raw(commit_id, _COMMIT)

    def raw(self, object_id: str, expected: int) -> bytes:
        """The bytes of a commit (1), tree (2) or blob (3)."""
        made = self._unwritten
        found = made.objects.get(object_id) if made is not None else None
        try:
            kind, data = found if found is not None else self._git.read(object_id)
        except library.FAILURES as error:
            raise _missing(object_id, self.path) from error
        if kind != expected:
            raise RepositoryUnreadable(f"{object_id} in {self.path} is an object of another kind")
        return bytes(data)

    def new_commits(self, head: str, without: str) -> Iterator[CommitInfo]:
        """The commits that `head` contains and `without` does not, merged ones too, the newest first. Raises
        RepositoryUnreadable."""
        self._wait_for(head, without)
        try:
            walker = self._git.walk(head, library.SortMode.TOPOLOGICAL)
            if without and self.has(without):
                walker.hide(without)
        except library.FAILURES as error:
            raise _missing(head, self.path) from error
        for found in walker:
            yield self.commit(str(found.id))

    def before(self, commit_id: str) -> Iterator[str]:
        """A commit and those that it contains, roughly the newest first. Raises RepositoryUnreadable."""
        self._wait_for(commit_id)
        try:
            for found in self._git.walk(commit_id, library.SortMode.TIME):
                yield str(found.id)
        except library.FAILURES as error:
            raise _missing(commit_id, self.path) from error

    def versions(self, head: str, file: str) -> list[str]:
        """Ids of the blobs that a file was in the history of a commit, each once, roughly the newest
        first."""
        self._wait_for(head)
        found: dict[str, None] = {}
        try:
            for commit in self._git.walk(head, library.SortMode.TIME):
                tree = commit.tree
                if file in tree:
                    found[str(tree[file].id)] = None
        except library.FAILURES as error:
            raise _missing(head, self.path) from error
        return [blob for blob in found if isinstance(self._git.get(blob), library.Blob)]

    def _chain(self, commit_id: str) -> Iterator[str]:
        current = commit_id
        while True:
            yield current
            found = self._load(current)
            if not isinstance(found, library.Commit):
                raise RepositoryUnreadable(f"{current} is not a commit")
            parents = found.parent_ids
            if not parents:
                return
            current = str(parents[0])

    def _load(self, object_id: str) -> library.Object:
        self._wait_for(object_id)
        try:
            return self._git[object_id]
        except library.FAILURES as error:
            raise _missing(object_id, self.path) from error


def _held(repo: Repository, directory: Path) -> tuple[int, int]:
    """Which directory is opened. It is kept open as long as the repository is, since its number is free for another one
    once nobody has it any more: what is made anew under the same name would be taken for it."""
    try:
        there = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0, 0
    finalize(repo, os.close, there)
    found = os.fstat(there)
    return found.st_dev, found.st_ino


def _file_of(directory: Path) -> tuple[int, int]:
    """Which directory stands there, whatever its name; (0, 0) for none."""
    try:
        found = directory.stat()
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _entries(data: bytes) -> list[TreeEntry]:
    """Every walk over a fleet passes here for every directory, so nothing is called for each that need not be."""
    kind_of, make = _KINDS.get, tuple.__new__
    return [
        make(TreeEntry, (name.decode("utf-8", "surrogateescape"), i.hex(), *kind_of(mode, _FILE)))
        for mode, name, i in tree_parts(data)
    ]


def tree_parts(data: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """(mode, name, 20-byte id) of a tree's bytes. Raises ValueError for what is no tree that git would make."""
    found: list[tuple[bytes, bytes, bytes]] = _PARTS.findall(data)
    if sum([len(mode) + len(name) + 22 for mode, name, _ in found]) != len(data):
        raise ValueError("a tree ends within an entry")
    return found


def _split(data: bytes) -> list[bytes]:
    """The same, each entry in one piece."""
    found: list[bytes] = _ENTRY.findall(data)
    if sum(map(len, found)) != len(data):
        raise ValueError("a tree ends within an entry")
    return found


def _unlike(first: bytes, second: bytes, besides: Iterable[str]) -> tuple[list[TreeEntry], list[TreeEntry]]:
    """What two trees' bytes do not have in common, and whatever is called as one of `besides`."""
    before, after = _split(first), _split(second)
    alike = set(before).intersection(after)
    for name in besides:
        called = b" %b\0" % name.encode()
        if called in first or called in second:
            alike -= {entry for entry in alike if entry[entry.index(b" ") : -20] == called}
    old, new = (_entries(b"".join([entry for entry in side if entry not in alike])) for side in (before, after))
    return old, new


def entry_of(subtree: TreeEntry) -> bytes:
    """A directory's entry as it stands in a tree."""
    return b"40000 %b\0%b" % (subtree.name.encode("utf-8", "surrogateescape"), bytes.fromhex(subtree.id))


def raw_entries(data: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(mode, name, 20-byte id) of a tree's bytes."""
    at, end = 0, len(data)
    while at < end:
        space = data.index(b" ", at)
        nul = data.index(b"\0", space)
        stop = nul + 21
        yield data[at:space], data[space + 1 : nul], data[nul + 1 : stop]
        at = stop


def _missing(object_id: str, path: Path) -> RepositoryUnreadable:
    return RepositoryUnreadable(
        f"{path} lacks the object {object_id}",
        "the repository is damaged, or a shallow or partial clone; complete it with: git fetch --unshallow / --refetch",
    )

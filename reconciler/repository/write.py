"""Writing git: trees from a few changed files, commits, and refs by compare-and-swap.

Called by the status branch, what is written to tenants' repositories, seed, and tests. Nothing here has a work tree or
an index: only the trees on the way to a changed file are read and written. A few objects are written loose; more go
into one pack, which costs a tenth of the disk and a few flushes. tidying makes one of many.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reconciler.repository import library, loosewriting, packwriting, refmoving
from reconciler.repository.command import git
from reconciler.repository.errors import RefMoved, RepositoryUnreadable
from reconciler.repository.objects import Repository, tree_parts

AUTHOR, MAIL = "Treeplane", "treeplane@localhost"
PACK_FROM = 6
"""So many objects and more are written as one pack. That is two files, and each of them is flushed; loose, each object
is a file in a directory of its own, and both are. A commit of one change has eight to thirteen."""
_TYPES = {1: b"commit", 2: b"tree", 3: b"blob"}


class Blob(NamedTuple):
    """A file whose content git already has. `mode` as git writes it."""

    id: str
    mode: bytes = b"100644"


class _Node(dict[bytes, "_Node | bytes | Blob | None"]):
    """The changes below one directory. `cleared`: what stood there before is dropped first."""

    cleared = False


class Batch:
    """Objects that are to be written together. Ids are known at once; git has them after `write`."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[int, bytes]] = {}

    def add(self, kind: int, data: bytes) -> str:
        """`kind` 1 commit, 2 tree, 3 blob. Returns the id."""
        object_id = object_name(kind, data)
        self.objects[object_id] = (kind, data)
        return object_id

    def write(self, repo: Repository) -> None:
        repo.require()
        if len(self.objects) < PACK_FROM:
            _write_loose(repo, self.objects)
        else:
            write_pack(repo, self.objects)
        self.objects.clear()


def object_name(kind: int, data: bytes) -> str:
    """The id that git gives to an object."""
    return hashlib.sha1(_named(kind, data), usedforsecurity=False).hexdigest()


def edit_tree(repo: Repository, base_tree: str | None, changes: Mapping[str, bytes | Blob | None]) -> str:
    """The id of `base_tree` with `changes` made to it.

    A path maps to its new content, to a Blob that git has, or to None: removed, be it a file or a directory with all
    below it. Directories that become empty vanish. Raises ValueError for a path that git would not take, or that is
    both a file and a directory.
    """
    batch = Batch()
    tree = plan_tree(repo, base_tree, changes, batch)
    batch.write(repo)
    return tree


def plan_tree(
    repo: Repository | None, base_tree: str | None, changes: Mapping[str, bytes | Blob | None], batch: Batch
) -> str:
    """As `edit_tree`, but only adds the new objects to `batch`. `repo` may be None when there is no base."""
    root = _Node()
    for path, change in changes.items():
        _insert(root, path, change)
    return _apply(repo, base_tree, root, batch) or batch.add(2, b"")


def commit_tree(
    repo: Repository,
    tree: str,
    parents: Sequence[str],
    message: str,
    when: int | None = None,
    ref: str | None = None,
    expected: str | None = None,
    sign: library.Sign | None = None,
) -> str:
    """Commits `tree`, at `when` seconds since 1970 (None: now), and moves `ref` from `expected` to it. `sign`: None
    leaves the commit unsigned.

    `expected` None means that the ref must not exist yet. Raises RefMoved when it is elsewhere; the commit then stands
    unreferenced.
    """
    for each in (tree, *parents):
        if not repo.has(each):
            raise RepositoryUnreadable(f"{repo.path} cannot be written to: it has no {each}")
    commit = put_commit(repo, commit_bytes(tree, parents, message, int(time.time()) if when is None else when, sign))
    if ref is not None:
        move_ref(repo, ref, commit, expected)
    return commit


def put_commit(repo: Repository, data: bytes) -> str:
    """Stores a commit, and returns its id. Raises RepositoryUnreadable."""
    batch = Batch()
    commit = batch.add(1, data)
    batch.write(repo)
    return commit


def commit_bytes(tree: str, parents: Sequence[str], message: str, when: int, sign: library.Sign | None) -> bytes:
    """A commit by Treeplane itself, for another repository: what it names need not be here. `sign`: None leaves it
    unsigned."""
    who = library.Author(AUTHOR, MAIL, when)
    return authored_bytes(tree, parents, message, (who, who), sign)


def authored_bytes(
    tree: str,
    parents: Sequence[str],
    message: str,
    people: tuple[library.Author, library.Author],
    sign: library.Sign | None,
) -> bytes:
    """The same of anybody's. `people`: its author, and who commits it."""
    author, by = (f"{each.name} <{each.mail}> {each.when} +0000" for each in people)
    head = [f"tree {tree}", *(f"parent {each}" for each in parents), f"author {author}", f"committer {by}"]
    payload = "\n".join([*head, "", message])
    if sign is None:
        return payload.encode()
    signature = sign(payload.encode()).rstrip("\n").replace("\n", "\n ")
    return "\n".join([*head, f"gpgsig {signature}", "", message]).encode()


def move_ref(repo: Repository, ref: str, commit: str | None, expected: str | None) -> None:
    """Compare-and-swap of one ref; `commit` None removes it. Raises RefMoved, and RepositoryUnreadable."""
    if commit == expected and repo.ref(ref) == expected:
        return
    repo.require()
    try:
        if expected is None and commit is not None:
            repo.references.create(ref, commit, force=False)
            return
        found = repo.reference(ref)
        if str(found.target) != expected:
            raise RefMoved(f"{ref} is at {found.target}, not at {expected}", "read it again")
        if commit is None:
            found.delete()
        elif not refmoving.move(repo, ref, commit, expected):
            found.set_target(commit)
    except (*library.FAILURES, OSError) as error:
        if repo.ref(ref) == expected:
            raise RepositoryUnreadable(f"{ref} in {repo.path} cannot be moved ({error})") from error
        raise RefMoved(f"{ref} is not at {expected} ({error})", "read it again") from error


def put_ref(repo: Repository, ref: str, commit: str) -> None:
    """Has a ref point to a commit, wherever it pointed before. Raises library.FAILURES and OSError."""
    if not refmoving.move(repo, ref, commit, None):
        repo.references.create(ref, commit, force=True)


def write_pack(repo: Repository, objects: Mapping[str, tuple[int, bytes]]) -> None:
    """Stores all `objects` as one pack, and flushes it."""
    pack, index = packwriting.packed(objects)
    if not index:
        answer = git(repo.git_dir, "index-pack", "--stdin", given=pack)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{repo.path} cannot be written to ({answer.error})")
        return
    try:
        packwriting.put(repo.git_dir / "objects" / "pack", pack, index)
    except OSError as error:
        raise RepositoryUnreadable(f"{repo.path} cannot be written to ({error})") from error


def _write_loose(repo: Repository, objects: Mapping[str, tuple[int, bytes]]) -> None:
    found = {name: _named(*each) for name, each in objects.items()}
    try:
        loosewriting.put(repo.git_dir / "objects", found)
    except OSError as error:
        raise RepositoryUnreadable(f"{repo.path} cannot be written to ({error})") from error


def _named(kind: int, data: bytes) -> bytes:
    """What the id of an object is the hash of."""
    return _TYPES[kind] + b" " + str(len(data)).encode() + b"\0" + data


def _insert(root: _Node, path: str, change: bytes | Blob | None) -> None:
    parts = [p.encode("utf-8", "surrogateescape") for p in path.split("/")]
    for part in parts:
        if not part or part in (b".", b"..") or b"\0" in part or part.lower() == b".git":
            raise ValueError(f"{path!r} is not a path that git can hold")
    node = root
    for part in parts[:-1]:
        found = node.get(part)
        if found is None:
            child = _Node()
            child.cleared = part in node
            node[part] = child
            node = child
        elif isinstance(found, _Node):
            node = found
        else:
            raise ValueError(f"{path!r} lies below a file")
    last = node.get(parts[-1])
    if isinstance(last, _Node):
        if change is not None:
            raise ValueError(f"{path!r} is a directory and a file")
        last.cleared = True
    else:
        node[parts[-1]] = change


def _apply(repo: Repository | None, tree: str | None, node: _Node, batch: Batch) -> str | None:
    data = repo.tree_data(tree) if tree is not None and repo is not None else b""
    entries = {name: (mode, oid) for mode, name, oid in tree_parts(data)}
    for name, change in node.items():
        if isinstance(change, _Node):
            mode, oid = entries.get(name, (b"", b""))
            below = oid.hex() if mode == b"40000" and not change.cleared else None
            sub = _apply(repo, below, change, batch)
            if sub is not None:
                entries[name] = (b"40000", bytes.fromhex(sub))
            elif mode == b"40000" or change.cleared:
                entries.pop(name, None)
        elif change is None:
            entries.pop(name, None)
        elif isinstance(change, Blob):
            entries[name] = (change.mode, bytes.fromhex(change.id))
        else:
            oid = bytes.fromhex(object_name(3, change))
            if entries.get(name, (b"", b""))[1] != oid:
                batch.add(3, change)
            entries[name] = (b"100644", oid)
    if not entries:
        return None
    ordered = sorted(entries.items(), key=lambda e: e[0] + b"/" if e[1][0] == b"40000" else e[0])
    out = b"".join([mode + b" " + name + b"\0" + oid for name, (mode, oid) in ordered])
    return batch.add(2, out) if out != data else tree

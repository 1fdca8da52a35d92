"""Who may sign: `signers/` of a commit's tree, or of the server's keys.

Called by whoever judges commits. A commit never vouches for its own signers: which directory counts for which commit is
the caller's to say. Nothing in it makes this raise: what cannot be read is a problem, and counts for nobody.
"""

from __future__ import annotations

import hashlib
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository, TreeEntry
from reconciler.signatures import allowed, openpgp
from reconciler.signatures.names import unfit

DIRECTORY = "signers"
_ALLOWED, _OPENPGP = "allowed_signers", "openpgp"
_SUFFIXES = (".asc", ".pgp")
_LARGEST, _LARGEST_CERTIFICATE, _LARGEST_TOGETHER = 1024 * 1024, 256 * 1024, 8 * 1024 * 1024
_MOST, _MOST_TOLD, _KEPT = 1_000, 100, 4


@dataclass(frozen=True, slots=True)
class Signers:
    """`allowed`: the file `allowed_signers`, as it is; `certificates`: user and OpenPGP certificate, each of which can
    be read; `problems`: files and lines that count for nobody, and why; `digest`: of all of it. True if anybody may
    sign."""

    allowed: bytes = b""
    certificates: tuple[tuple[str, bytes], ...] = ()
    problems: tuple[str, ...] = ()
    digest: str = ""

    def __bool__(self) -> bool:
        return bool(self.certificates) or bool(allowed.read(self.allowed).keys)


class _File(NamedTuple):
    """`size`: None where it is no regular file."""

    name: str
    size: int | None
    read: Callable[[], bytes]


_memo: dict[tuple[str, str], Signers] = {}
_lock = threading.Lock()


def directory_in(repo: Repository, tree_id: str) -> str:
    """Where a commit's tree has it, if it does."""
    return joined(repo.folder_at(tree_id), DIRECTORY)


def of_tree(repo: Repository, tree_id: str) -> Signers:
    """Of the tree of a commit. Raises RepositoryUnreadable where git lacks an object of it."""
    place = directory_in(repo, tree_id)
    found = repo.entry_at(tree_id, place)
    if found is None:
        return _NOBODY
    if found.kind != "tree":
        return _made(place, [], [], [f"{place} is no directory"])
    with _lock:
        known = _memo.get((place, found.id))
    if known is None:
        top = repo.entries(found.id)
        below = next((e.id for e in top if e.name == _OPENPGP and e.kind == "tree"), None)
        inside = repo.entries(below) if below is not None else ()
        known = _made(place, (_in_git(repo, e) for e in top), (_in_git(repo, e) for e in inside), [])
        with _lock:
            _memo[place, found.id] = known
            while len(_memo) > _KEPT:
                del _memo[next(iter(_memo))]
    return known


def of_directory(path: Path) -> Signers:
    """The same of a directory of this machine, like `keys/signers`, in which links are followed: it is its owner's."""
    place, problems = f"{path.parent.name}/{path.name}", list[str]()
    top = _on_disk(path, place, problems)
    below = _on_disk(path / _OPENPGP, f"{place}/{_OPENPGP}", problems)
    return _made(place, top, below, problems)


def _made(place: str, top: Iterable[_File], below: Iterable[_File], problems: list[str]) -> Signers:
    lines = b""
    for file in top:
        if file.name == _ALLOWED:
            lines = _content(file, f"{place}/{_ALLOWED}", _LARGEST, problems)
    read = allowed.read(lines)
    problems += [f"{place}/{_ALLOWED}:{number}: {why}" for number, why in read.problems]
    certificates = _certificates(f"{place}/{_OPENPGP}", below, problems)
    untold = read.untold + max(0, len(problems) - _MOST_TOLD)
    if untold:
        problems[_MOST_TOLD:] = [f"{place}: {untold} more cannot be read"]
    told = tuple(problems)
    return Signers(lines, certificates, told, _digest(lines, certificates, told))


def _certificates(place: str, files: Iterable[_File], problems: list[str]) -> tuple[tuple[str, bytes], ...]:
    found, names, together = list[tuple[str, bytes]](), list[str](), 0
    for file in files:
        where = f"{place}/{_shown(file.name)}"
        user, suffix = file.name[:-4], file.name[-4:]
        if file.name.startswith("."):
            continue
        why = unfit(user) if suffix in _SUFFIXES else f"its name ends in neither of {' and '.join(_SUFFIXES)}"
        if not why and (len(found) == _MOST or together + (file.size or 0) > _LARGEST_TOGETHER):
            why = f"these are more than {_MOST} certificates, or {_LARGEST_TOGETHER} bytes together"
        if why:
            problems.append(f"{where}: {why}")
            continue
        data = _content(file, where, _LARGEST_CERTIFICATE, problems)
        if data:
            together += len(data)
            found.append((user, data))
            names.append(where)
    bad = dict(openpgp.read(tuple(found)).problems) if found else {}
    problems += [f"{names[number]}: {why}" for number, why in bad.items()]
    return tuple(one for number, one in enumerate(found) if number not in bad)


def _content(file: _File, where: str, largest: int, problems: list[str]) -> bytes:
    """Empty where it cannot be had."""
    if file.size is None:
        problems.append(f"{where}: it is no regular file")
        return b""
    try:
        data = file.read() if file.size <= largest else b""
    except OSError as error:
        problems.append(f"{where}: it cannot be read ({error.strerror})")
        return b""
    if file.size > largest or len(data) > largest:
        problems.append(f"{where}: it is larger than {largest} bytes")
        return b""
    return data


def _in_git(repo: Repository, entry: TreeEntry) -> _File:
    size = repo.blob_size(entry.id) if entry.kind == "blob" else None
    return _File(entry.name, size, lambda: repo.blob(entry.id))


def _on_disk(path: Path, place: str, problems: list[str]) -> Iterator[_File]:
    try:
        files = sorted(path.iterdir())
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(f"{place}: it cannot be read ({error.strerror})")
        return
    for file in files:
        try:
            found = file.stat()
            size = found.st_size if stat.S_ISREG(found.st_mode) else None
        except OSError:
            size = None
        yield _File(file.name, size, file.read_bytes)


def _shown(name: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in name[:100])


def _digest(lines: bytes, certificates: Iterable[tuple[str, bytes]], problems: Iterable[str]) -> str:
    found = hashlib.sha256()
    pairs = [(user.encode(), data) for user, data in certificates]
    for part in (lines, *(part for pair in pairs for part in pair), *(p.encode() for p in problems)):
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()


_NOBODY = _made(DIRECTORY, (), (), [])

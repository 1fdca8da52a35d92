"""`treeplane recover`: a data directory for a server that was lost, out of its repository and, where there is one, a
backup, which has the repository too if the server hosted it. Needs no server, and starts none.

Called by the command line. Before anything is put in place it says what comes back and what does not, as a drill finds
it. What only the lost store had is put back by the server itself, once it holds the fleet (saving/puttingback).
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from apiserver.auth.files import private_directory, write_private
from apiserver.model.hostedrepository import PLACE
from apiserver.model.redaction import redact
from reconciler.commands.dataplace import LOCK, RECOVERING, only_one, require_place
from reconciler.commands.drill import drill, location
from reconciler.commands.failure import USAGE, Failure
from reconciler.commands.remoteaccess import check_access, typed
from reconciler.commands.source import put_there, resolve
from reconciler.drilling.freshclone import CloneAsked
from reconciler.drilling.rehearsal import KeptAside
from reconciler.drilling.result import Drill
from reconciler.drilling.telling import as_text
from reconciler.encryption.agekeys import AgeIdentity, BadKeyFile, identities
from reconciler.repository.access import NO_ACCESS, RemoteAccess
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.source import kind_of_source
from reconciler.saving.archive import BadBackup
from reconciler.saving.hosted import brought_back
from reconciler.saving.puttingback import UNRECORDED
from reconciler.saving.taking import TakenBackup, take
from reconciler.saving.unpushed import UNPUSHED


@dataclass(frozen=True, slots=True)
class BackupGiven:
    """A backup, and the file with the age key that opens it."""

    file: Path
    identity: Path


@dataclass(frozen=True, slots=True)
class RecoverAsked:
    """`source`: a clone, or a URL, and with what that is reached (`access`); "": the backup's repository. `backup`:
    None where there is none. `folder`: in which the fleet stands; "" for the only one."""

    source: str
    branch: str
    data_dir: Path
    backup: BackupGiven | None
    folder: str = ""
    access: RemoteAccess = NO_ACCESS


def recover(asked: RecoverAsked) -> Iterator[str]:
    """Lines for people, each before what it tells of. Raises Failure, and then the directory is as it was."""
    _require_empty(asked.data_dir)
    if asked.source:
        asked = replace(asked, folder=location(asked.source, asked.folder)[1])
    check_access(asked.source, asked.access)
    known = identities_of(asked.backup) if asked.backup is not None else []
    with _filling(asked.data_dir) as (staging, again):
        if again:
            yield f"an earlier recovery into {asked.data_dir} was cut off: what it left is removed, and it begins anew"
        taken = None
        if asked.backup is not None:
            taken = taken_from(asked.backup, known, staging)
            yield said_of(asked.backup, taken)
            if asked.source and taken.repository is not None:
                yield f"its repository is left out: --from names {redact(asked.source)}"
        else:
            yield "no backup (--backup): what is named below as not in the repository is lost"
        clone, name = CloneAsked(asked.source, asked.branch, asked.folder, asked.access), redact(asked.source)
        if asked.backup is not None and taken is not None and not asked.source:
            name, clone = str(asked.backup.file), clone_in(asked.backup, taken, clone)
            asked = replace(asked, folder=clone.folder)
        yield f"what {name} brings back is looked at:"
        found = replace(drill(clone, beside_of(taken)), source=name)
        yield as_text(found).rstrip("\n")
        yield from _put_in_place(asked, taken)
        yield from _next(asked, found, taken)


def taken_from(given: BackupGiven, known: list[AgeIdentity], place: Path) -> TakenBackup:
    """Raises Failure."""
    try:
        return take(given.file, known, place)
    except BadBackup as error:
        raise Failure(
            f"{given.file} cannot be used: {error}", "give the file and the key (--identity) that belong together"
        ) from error


def clone_in(given: BackupGiven, taken: TakenBackup, asked: CloneAsked) -> CloneAsked:
    """Of the repository that a backup has, which is made beside what was taken out of it. Raises Failure."""
    if taken.repository is None:
        raise Failure(
            f"{given.file} has no repository: the server did not host it, or it was left out",
            "name a clone of it, or its URL: --from CLONE|URL",
            USAGE,
        )
    git_dir = taken.keys.parent / PLACE
    try:
        brought_back(taken.repository, git_dir, asked.branch)
    except RepositoryError as error:
        raise Failure(f"{given.file} cannot be used: {error}") from error
    return replace(asked, source=str(git_dir), folder=location(str(git_dir), asked.folder)[1])


@contextmanager
def opened(given: BackupGiven) -> Iterator[TakenBackup]:
    """A backup in a directory that is thrown away. Raises Failure."""
    known = identities_of(given)
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        yield taken_from(given, known, Path(scratch))


def beside_of(taken: TakenBackup | None) -> KeptAside:
    """What a drill has of a backup."""
    if taken is None:
        return KeptAside()
    return KeptAside(taken.keys, taken.store if taken.objects else None, taken.unpushed, taken.fleet)


def said_of(given: BackupGiven, taken: TakenBackup) -> str:
    served = f", when {taken.served:.10} was served" if taken.served else ""
    more = ", and commits that the repository may not have" if taken.unpushed is not None else ""
    whole = ", and the repository that the server hosted" if taken.repository is not None else ""
    stored = f"{taken.objects} records that only the store had"
    return f"{given.file}: made at {taken.made}{served}; keys/, {stored}{more}{whole}"


def identities_of(given: BackupGiven) -> list[AgeIdentity]:
    """Raises Failure, which quotes nothing of the file."""
    try:
        found = identities(given.identity.read_text("utf-8"))
    except (BadKeyFile, ValueError) as error:
        why = str(error) if isinstance(error, BadKeyFile) else "it is no text"
        raise Failure(f"--identity {given.identity}: {why}", "name a file as age-keygen makes it", USAGE) from None
    if not found:
        raise Failure(f"--identity {given.identity}: it holds no key", "name a file as age-keygen makes it", USAGE)
    return found


def _require_empty(directory: Path) -> None:
    names = {each.name for each in directory.iterdir()} if directory.is_dir() else set[str]()
    if names - {LOCK} and RECOVERING not in names:
        shown = ", ".join(sorted(names)[:3])
        raise Failure(
            f"{directory} is not empty: it has {shown}{', …' if len(names) > 3 else ''}",
            "a recovery is into an empty directory only: name another --data-dir, or move that one away",
            USAGE,
        )


@contextmanager
def _filling(directory: Path) -> Iterator[tuple[Path, bool]]:
    """The place where things wait until they are whole, and whether an earlier recovery was cut off.

    What such a one left is removed: the directory was empty when it made its mark, and no server starts on one that has
    the mark. What fails leaves what was there before: nothing."""
    made = not directory.exists()
    require_place(directory)
    staging = directory / RECOVERING
    try:
        with only_one(directory):
            again = staging.exists()
            if again:
                _empty(directory)
            private_directory(staging)
            try:
                yield staging, again
            except BaseException:
                _empty(directory)
                raise
            shutil.rmtree(staging)
    except BaseException:
        (directory / LOCK).unlink(missing_ok=True)
        if made:
            with suppress(OSError):
                directory.rmdir()
        raise


def _empty(directory: Path) -> None:
    """The mark goes last."""
    for each in sorted(directory.iterdir(), key=lambda path: path.name == RECOVERING):
        if each.name == LOCK:
            continue
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()


def _put_in_place(asked: RecoverAsked, taken: TakenBackup | None) -> Iterator[str]:
    data_dir = asked.data_dir
    if taken is not None:
        taken.keys.rename(data_dir / "keys")
        yield f"{data_dir / 'keys'}: from the backup"
        if taken.objects:
            taken.store.rename(data_dir / UNRECORDED)
            yield f"{data_dir / UNRECORDED}: put into the store by the server, once it holds the fleet"
        if taken.unpushed is not None:
            taken.unpushed.rename(data_dir / UNPUSHED)
            yield f"{data_dir / UNPUSHED}: taken in by the server, and pushed where the repository has nothing newer"
    if taken is not None and not asked.source:
        yield from _put_repository(data_dir, taken, asked.branch)
        return
    source = resolve(asked.source, data_dir, asked.branch, folder=asked.folder)
    yield from source.notes
    remembered = asked.source
    if kind_of_source(asked.source) != "url":
        remembered = str(Path(asked.source).resolve())
    write_private(data_dir / "source", f"{remembered}\n".encode())
    yield f"{data_dir / 'source'}: {redact(asked.source)} is what is served"


def _put_repository(data_dir: Path, taken: TakenBackup, branch: str) -> Iterator[str]:
    """The one of the backup, as the one that the server hosts."""
    git_dir = data_dir / PLACE
    (taken.keys.parent / PLACE).parent.rename(git_dir.parent)
    head = Repository(git_dir).ref(f"refs/heads/{branch}")
    assert head is not None
    put_there(git_dir, head)
    yield f"{git_dir}: from the backup; it is what is served, and the truth for all clones"


def _next(asked: RecoverAsked, found: Drill, taken: TakenBackup | None) -> Iterator[str]:
    words = ["treeplane", "up", "--data-dir", str(asked.data_dir)]
    if asked.branch != "main":
        words += ["--branch", asked.branch]
    if asked.folder:
        words += ["--path", asked.folder]
    if taken is None:
        yield (
            f"if there is a copy of keys/, put it at {asked.data_dir / 'keys'} now; without, kubeconfigs and clones of "
            "before are refused, and Secrets that were kept there are gone"
        )
    line = f"{shlex.join(words)}{typed(asked.access)}"
    yield f"recovered. It serves with:\n  {line}"
    if found.holder:
        yield (
            f"the fleet is held by {found.holder}, as its status branch says: where that may still run, this server "
            f"only observes. When it is gone for good:\n  {line} --take-over {shlex.quote(found.holder)}"
        )

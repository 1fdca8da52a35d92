"""`treeplane backup`: what a server has and its repository has not, and that too where the server hosts it, in one file
that the holder of an age key opens.

Called by the command line, on the server's machine; the server may run. What goes in is reconciler/saving's.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from apiserver.auth.keys import KeysError
from apiserver.model.counts import counted
from apiserver.storage.lmdb_looking import UNREADABLE
from reconciler.commands.failure import USAGE, Failure, of_files
from reconciler.encryption.agekeys import are_recipients
from reconciler.repository.errors import RepositoryError
from reconciler.saving.archive import BadBackup, write
from reconciler.saving.contents import Saved, entries

_MADE = "age-keygen -o KEYFILE makes a key and prints its public half; keep KEYFILE away from this machine"


@dataclass(frozen=True, slots=True)
class BackupAsked:
    """`recipient`: the public half of an age key. `target`: the file that is made; none is overwritten. `repository`:
    whether with the one that the server hosts, if it does."""

    data_dir: Path
    keys_dir: Path
    recipient: str
    target: Path
    repository: bool = True


def backup(asked: BackupAsked) -> Iterator[str]:
    """Lines for people. Raises Failure; then there is no file."""
    if not are_recipients([asked.recipient]):
        # Not quoted: somebody may have given his secret key.
        raise Failure("--recipient: that is no public key of age's, which begins with age1", _MADE, USAGE)
    if os.path.lexists(asked.target):
        raise Failure(f"{asked.target} is there already, and is not overwritten", "name another file", USAGE)
    saved = Saved()
    try:
        size = _made(asked, saved)
    except BadBackup as error:
        raise Failure(str(error), "take it out of keys/") from error
    except KeysError as error:
        raise Failure(str(error), "name the data directory of a server (--data-dir), and its keys (--keys)") from error
    except RepositoryError as error:
        raise Failure(str(error)) from error
    except UNREADABLE as error:
        failure = of_files(error) if isinstance(error, OSError) else None
        raise failure or Failure(f"the store of {asked.data_dir} cannot be read: {error}") from error
    yield f"{asked.target}: {counted(size, 'byte')}, encrypted for {asked.recipient}"
    yield f"  {counted(len(saved.keys), 'file')} of keys/"
    if saved.bare:
        yield "  nothing of a store: there is none yet"
    else:
        yield f"  what only the store had while {saved.commit:.10} was served"
    if saved.unpushed:
        yield f"  commits that the repository does not have, or got within two days: {saved.unpushed} bytes"
    if saved.repository:
        yield f"  the repository that the server hosts, all branches and tags: {counted(saved.repository, 'byte')}"
    without = "" if saved.repository else f"the repository, of which {_copy(saved)} is the copy; "
    yield f"not in it: {without}what clusters have, embedded ones too"
    source = "" if saved.repository else " --from CLONE"
    yield f"try it where the key is: treeplane drill{source} --backup {asked.target.name} --identity KEYFILE"


def _copy(saved: Saved) -> str:
    return "a clone that fetches all branches, and nothing else," if saved.hosts else "a clone or a forge"


def _made(asked: BackupAsked, saved: Saved) -> int:
    """Whole or not at all, and nobody else's to read; how large it is."""
    handle, name = tempfile.mkstemp(prefix=f".{asked.target.name}.", dir=asked.target.absolute().parent)
    try:
        with os.fdopen(handle, "wb") as file:
            found = entries(asked.data_dir, asked.keys_dir, time.time(), saved, repository=asked.repository)
            write(found, asked.recipient, file)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        os.link(name, asked.target)
        return size
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()

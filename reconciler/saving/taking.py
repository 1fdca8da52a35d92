"""A backup, taken apart into a directory of its own: keys as they were, what only the store and the mirror had, to be
put back, and the repository that was hosted.

Called by `treeplane recover` and `treeplane drill`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from apiserver.auth.files import private_directory
from reconciler.encryption.agekeys import AgeIdentity
from reconciler.saving import archive
from reconciler.saving.archive import FACTS, KEYS, MIRROR, REPOSITORY, STORE, BadBackup
from reconciler.saving.hosted import BUNDLE
from reconciler.saving.lines import operations
from reconciler.saving.unpushed import UNPUSHED

_PLAIN = "archive.tar"
_WHOLE = {MIRROR: UNPUSHED, REPOSITORY: BUNDLE}
"""What comes in pieces of one file."""


@dataclass(frozen=True, slots=True)
class TakenBackup:
    """`keys`, `store`: directories. `made`: when, as it says; `served`: the commit that was served then; `fleet`: the
    fleet's id, "" where nothing had been loaded. `objects`: how many only the store had. `unpushed`: the file with
    what only the mirror had; None where there was nothing. `repository`: the one that the server hosted, as a file;
    None where the backup has none."""

    keys: Path
    store: Path
    made: str
    served: str
    fleet: str
    objects: int
    unpushed: Path | None = None
    repository: Path | None = None


def take(file: Path, identities: list[AgeIdentity], place: Path) -> TakenBackup:
    """`place`: an empty directory, the caller's to take away where this fails. Raises BadBackup and OSError."""
    for each in (place / KEYS, place / STORE):
        private_directory(each)
    plain, facts, objects = place / _PLAIN, {}, 0
    try:
        with file.open("rb") as source:
            for name, content in archive.read(source, identities, plain):
                if name == FACTS:
                    facts = archive.facts_of(content)
                    continue
                if name.startswith(f"{STORE}/"):
                    objects += sum(1 for _ in operations(content))
                if (whole := _WHOLE.get(name.partition("/")[0])) is not None:
                    _add(place / whole, content)
                    continue
                _write(place / name, content)
    finally:
        plain.unlink(missing_ok=True)
    if not (place / KEYS / "ca.key").is_file():
        raise BadBackup("it has no keys/ca.key")
    made, served, fleet = (str(facts.get(each, "")) for each in ("made", "served", "fleet"))
    unpushed, repository = (file if file.exists() else None for file in (place / UNPUSHED, place / BUNDLE))
    return TakenBackup(place / KEYS, place / STORE, made, served, fleet, objects, unpushed, repository)


def _add(file: Path, content: bytes) -> None:
    """The next piece of a file."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as target:
        target.write(content)


def _write(file: Path, content: bytes) -> None:
    private_directory(file.parent)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        target.write(content)

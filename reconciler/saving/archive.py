"""The file that a backup is: a tar within age, so whoever has it and not the key learns its size and nothing else.

Written and read piece by piece. What is read was somebody's to write who may encrypt for a public key, so it is taken
apart by hand: regular files under names that are expected, and nothing of it counts before all was read and whole.
"""

from __future__ import annotations

import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

import orjson

from reconciler.encryption.agekeys import AgeIdentity, encrypt
from reconciler.encryption.faults import DamagedFile

VERSION = 3
"""Of the form. A later one is refused by name. The first had nothing of a mirror, the second no repository."""
FACTS, KEYS, STORE, MIRROR, REPOSITORY = "backup.json", "keys", "store", "mirror", "repository"
_LARGEST = 64 << 20
"""Bytes of one file in it."""


class BadBackup(Exception):
    """It cannot be used; the text says why, and quotes nothing of it but names."""


class ArchiveEntry(NamedTuple):
    """A file of it. `name`: as it stands there, like `keys/ca.key`."""

    name: str
    content: bytes


def write(entries: Iterator[ArchiveEntry], recipient: str, target: BinaryIO) -> None:
    """Raises UnfitFile, OSError, BadBackup for what is too large, and whatever `entries` raises."""
    reading, writing = os.pipe()
    failed: list[BaseException] = []

    def fill() -> None:
        try:
            with (
                os.fdopen(writing, "wb") as pipe,
                tarfile.open(fileobj=pipe, mode="w|", format=tarfile.PAX_FORMAT) as tar,
            ):
                for each in entries:
                    if len(each.content) > _LARGEST:
                        raise BadBackup(f"{each.name} is too large for a backup: it has {len(each.content)} bytes")
                    info = tarfile.TarInfo(each.name)
                    info.size, info.mode = len(each.content), 0o600
                    tar.addfile(info, io.BytesIO(each.content))
        except BaseException as error:
            failed.append(error)

    filling = threading.Thread(target=fill, name="archive", daemon=True)
    with os.fdopen(reading, "rb") as pipe:
        filling.start()
        try:
            encrypt(recipient, pipe, target)
        finally:
            pipe.close()  # who still writes ends
            filling.join()
    if failed:
        raise failed[0]


def read(source: BinaryIO, identities: list[AgeIdentity], plain: Path) -> Iterator[ArchiveEntry]:
    """`plain`: where it is decrypted to, a file that the caller takes away. Raises BadBackup, before the first entry
    where the file is not whole."""
    _decrypt(source, identities, plain)
    names: set[str] = set()
    try:
        with tarfile.open(plain, mode="r:") as tar:
            for info in tar:
                name = _checked(info)
                if name in names:
                    raise BadBackup(f"it has {name!r} twice")
                if not names:
                    _check_first(name)
                names.add(name)
                file = tar.extractfile(info)
                assert file is not None
                entry = ArchiveEntry(name, file.read())
                if name == FACTS:
                    _check_version(entry.content)
                yield entry
    except tarfile.TarError as error:
        raise BadBackup(f"it holds no archive ({error})") from None
    if not names:
        raise BadBackup("it is empty")


def _decrypt(source: BinaryIO, identities: list[AgeIdentity], plain: Path) -> None:
    why = "the identity file holds no key"
    for identity in identities:
        source.seek(0)
        with _private(plain) as target:
            try:
                identity.decrypt(source, target)
            except DamagedFile as error:
                why = str(error)
                continue
            return
    raise BadBackup(why)


def _private(file: Path) -> BinaryIO:
    return os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _checked(info: tarfile.TarInfo) -> str:
    """The name of an entry that may be there."""
    parts = PurePosixPath(info.name).parts
    usual = info.name == FACTS or (len(parts) > 1 and parts[0] in (KEYS, STORE, MIRROR, REPOSITORY))
    if not info.isreg() or info.issparse() or not usual or "/".join(parts) != info.name:
        raise BadBackup(f"it has {info.name!r}, which is no file that a backup has")
    if any(part.startswith(".") or "\0" in part for part in parts):
        raise BadBackup(f"it has {info.name!r}, which leads elsewhere")
    if info.size > _LARGEST:
        raise BadBackup(f"{info.name!r} is too large")
    return info.name


def _check_first(name: str) -> None:
    if name != FACTS:
        raise BadBackup(f"it begins with {name!r}, and a backup with {FACTS}")


def _check_version(content: bytes) -> None:
    version = facts_of(content).get("version")
    if version not in range(1, VERSION + 1):
        raise BadBackup(
            f"it is of version {version!r:.20}, and this program reads {VERSION}: use the one that wrote it"
        )


def facts_of(content: bytes) -> dict[str, object]:
    try:
        found = orjson.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadBackup(f"its {FACTS} does not read")
    return found

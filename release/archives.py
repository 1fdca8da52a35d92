"""Archives that are the same bytes whenever and by whomever they are made of the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path


def tar_gz(to: Path, files: Iterable[tuple[str, bytes, bool]], epoch: int) -> None:
    """`files`: names within, contents, and whether one is a program. No owner, no order but the names', one time."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content, program in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch, 0o755 if program else 0o644
            tar.addfile(entry, io.BytesIO(content))
    with to.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch) as packed:
        packed.write(made.getvalue())


def members(archive: Path) -> list[tuple[str, bytes, bool]]:
    """The files of one, as `tar_gz` takes them."""
    found = []
    with tarfile.open(archive) as tar:
        for entry in tar.getmembers():
            if (content := tar.extractfile(entry)) is not None:
                found.append((entry.name, content.read(), bool(entry.mode & 0o100)))
    return found


def unpack(files: Iterable[tuple[str, bytes, bool]], into: Path) -> None:
    for name, content, program in files:
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if program else 0o644)

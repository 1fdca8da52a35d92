"""Files below `keys/`: of the server where this is its machine; else a file to be brought there.

Called by `desk`. They are the owner's alone (0600), are written whole or not at all, and never stand in a work tree
where a commit might take them.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from apiserver.auth.files import private_directory, write_private
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FiledFile
from reconciler.commands.filing.safety import require_inside, require_no_links
from reconciler.loading.changeset import ChangeKind
from reconciler.repository.command import git

PREFIX = "keys/"


class KeysFiles:
    """`directory`: keys/ of the server, None where it is not here."""

    def __init__(self, directory: Path | None) -> None:
        self.directory = directory
        self._files: dict[str, bytes | None] = {}

    def put(self, path: str, data: bytes | None) -> None:
        """What is to stand at a path below keys/; None: nothing. Raises Failure for one that leads elsewhere."""
        require_inside(path)
        if self.directory is not None:
            require_no_links(self.directory, path)
        self._files[path] = data

    def read(self, path: str) -> bytes | None:
        """None where nothing stands there, or nobody here knows."""
        if path in self._files:
            return self._files[path]
        try:
            return (self.directory / path).read_bytes() if self.directory is not None else None
        except FileNotFoundError:
            return None

    def planned(self) -> list[FiledFile]:
        """What would be done."""
        return [self._told(f"{PREFIX}{path}", path, data) for path, data in sorted(self._files.items())]

    def require(self) -> None:
        """That `write` can. Raises Failure."""
        if self.directory is None:
            for path, data in self._files.items():
                if data is not None:
                    _require_outside(self._here(path), data)

    def write(self) -> tuple[list[FiledFile], list[str]]:
        """What was done, and what is left to do."""
        done: list[FiledFile] = []
        notes: list[str] = []
        for path, data in sorted(self._files.items()):
            if self.directory is not None:
                file = self.directory / path
                done.append(self._told(str(file), path, data))
                _write(self.directory, file, data)
            elif data is None:
                notes.append(f"on the server's machine, remove {PREFIX}{path} of its data directory")
            else:
                file = self._here(path)
                write_private(file, data)
                done.append(FiledFile(str(file), ChangeKind.CREATED, data, hidden=True))
                notes.append(_bring(file, path))
        return done, notes

    def _told(self, where: str, path: str, data: bytes | None) -> FiledFile:
        file = self.directory / path if self.directory is not None else None
        there = file.read_bytes() if file is not None and file.is_file() else None
        return FiledFile(where, change_of(there, data), data, hidden=True)

    def _here(self, path: str) -> Path:
        """Where it is put to be brought to the server."""
        return Path.cwd() / path.replace("/", "_").replace(":", "_")


def change_of(before: bytes | None, after: bytes | None) -> ChangeKind:
    if before == after:
        return ChangeKind.UNCHANGED
    if after is None:
        return ChangeKind.DELETED
    return ChangeKind.CREATED if before is None else ChangeKind.CONFIGURED


def _write(top: Path, file: Path, data: bytes | None) -> None:
    if data is None:
        file.unlink(missing_ok=True)
        return
    for above in reversed(file.relative_to(top).parents):
        private_directory(top / above)
    if not file.is_file() or file.read_bytes() != data:
        write_private(file, data)
    elif file.stat().st_mode & 0o077:
        file.chmod(0o600)


def _require_outside(file: Path, data: bytes) -> None:
    """That git has nothing to do with a file, and that it overwrites none."""
    top = next((above for above in file.parents if (above / ".git").exists()), None)
    if top is not None and git(top / ".git", "-C", str(top), "check-ignore", "--quiet", str(file)).code != 0:
        raise Failure(
            f"keys/ of the server is not here, and {file} would be in a work tree, where a commit might take it",
            f"go to a directory that is in none and name the clone: --clone {shlex.quote(str(top))}; or name the "
            "server's data directory: --data-dir DIRECTORY",
            2,
        )
    if file.exists() and file.read_bytes() != data:
        raise Failure(f"{file} is there already", "bring it to the server, or remove it", 2)


def _bring(file: Path, path: str) -> str:
    """The line that does it, with SERVER and DATA-DIR to be filled in."""
    folder = shlex.quote(f"keys/{path.rpartition('/')[0]}")
    inner = f"umask 077; cd DATA-DIR && mkdir -p {folder} && cat > {shlex.quote(f'keys/{path}')}"
    line = f"ssh SERVER {shlex.quote(inner)} < {shlex.quote(str(file))}"
    return f"it belongs on the server's machine: {line} && rm {shlex.quote(str(file))}"

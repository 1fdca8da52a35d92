"""Which custom resources have a name in metrics: the first hundred that the server meets, whichever process meets them.

Tenants make up the names of kinds, and may make up any number. All processes agree on which have a name, by a file
beside the numbers: a line each, in the order in which they were met since the server started. All others are `other`.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

from apiserver.metrics import place

MOST = 100
_LONGEST = 253
_FILE = "customresources"

GroupVersionResource = tuple[str, str, str]


class CustomKinds:
    """Of one process. `directory` None: it is the only one."""

    def __init__(self, directory: Path | None, most: int = MOST) -> None:
        self._file, self._most = directory / _FILE if directory is not None else None, most
        self._known: set[GroupVersionResource] = set()

    def has_name(self, kind: GroupVersionResource) -> bool:
        """Of a kind that is served."""
        if kind not in self._known and len(self._known) < self._most and all(len(part) <= _LONGEST for part in kind):
            self._meet(kind)
        return kind in self._known

    def _meet(self, kind: GroupVersionResource) -> None:
        if self._file is None:
            self._known.add(kind)
            return
        with self._file.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            lines = [tuple(line.rstrip("\n").split(" ")) for line in file]
            self._known |= {(line[0], line[1], line[2]) for line in lines if len(line) == 3}
            if kind not in self._known and len(self._known) < self._most:
                file.write(f"{' '.join(kind)}\n")
                self._known.add(kind)


def of_process() -> CustomKinds:
    at = place.here()
    return CustomKinds(at.directory if at is not None else None)

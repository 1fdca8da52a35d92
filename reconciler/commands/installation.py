"""Which server this is: a number of the data directory, and one for each start.

Kept in `<data>/installation`, outside of all that is recovered: a server that lost its data directory is another one.
The number of a start tells a data directory that was copied apart from its original. A start's number is on disk before
anything says it, beside those of earlier starts: what they wrote is ours as well; and beside the place where it ran,
which says whether the last of them is certain to have ended.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from pathlib import Path
from typing import NamedTuple

log = logging.getLogger(__name__)

FILE = "installation"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_KEPT = 16
"""Earlier starts that are remembered: one that wrote nothing is forgotten with the next."""


class _Found(NamedTuple):
    id: str
    starts: list[int]
    fleets: list[str]
    place: str


class Installation:
    """One start of one server. `writer` is what it is called; `claim` has to be called before that is said anywhere."""

    def __init__(self, data_dir: Path, now: float | None = None, writer: str = "") -> None:
        """Made by the one process that has the role of loading, and by the one that it lends others to, as the same
        start, which is called `writer`; only who signs status commits claims. `now`: seconds since 1970."""
        self.file = data_dir / FILE
        found = self._read()
        called, _, number = writer.partition("/")
        start = int(number or 0)
        # Who is asked first has nothing on disk yet.
        self.id, self._fleets = called or found.id, found.fleets
        self._starts = [number for number in found.starts if number != start]
        self._place = _place(data_dir)
        last = self._starts[-1] if self._starts else None
        self.ended = f"{self.id}/{last}" if last is not None and self._place and found.place == self._place else ""
        """What the start before this one is called, if it is certain to have ended: it ran in this very directory, on
        this machine since that was started, and whoever runs there has the lock. "" where a copy of the directory, or
        another machine, may still be at work under that name."""
        begun = int((time.time() if now is None else now) * 1_000_000)
        self.start = start or max([begun, *(n + 1 for n in self._starts)])
        self._claimed = False

    @property
    def writer(self) -> str:
        """`<installation>/<start>`."""
        return f"{self.id}/{self.start}"

    def is_own(self, writer: str) -> bool:
        """Whether this start or an earlier one of this very data directory is called so."""
        installation, _, start = writer.partition("/")
        return installation == self.id and start in {str(n) for n in (*self._starts, self.start)}

    def wrote(self, fleet: str) -> bool:
        """Whether any start of this data directory ever wrote the status branch of this fleet (an id)."""
        return fleet in self._fleets

    def claim(self, fleet: str) -> None:
        """Makes the number last, and that it was used for a fleet. Cheap after the first time."""
        if self._claimed:
            return
        fleets = list(dict.fromkeys([*self._fleets, fleet]))
        starts = [*self._starts[-_KEPT:], self.start]
        found = {"id": self.id, "starts": starts, "fleets": fleets, "place": self._place}
        fresh = self.file.with_name(f".{FILE}.new")
        with fresh.open("w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(found, file)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.file)
        directory = os.open(self.file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        self._claimed = True

    def _read(self) -> _Found:
        try:
            found = json.loads(self.file.read_text("ascii"))
            starts, fleets = [int(n) for n in found["starts"]], [str(f) for f in found.get("fleets", ())]
            return _Found(str(found["id"]), starts, fleets, str(found.get("place", "")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read (%s): this server counts as a new one", self.file, error)
        return _Found(uuid.uuid4().hex, [], [], "")


def _place(directory: Path) -> str:
    """Of a directory on a machine that runs: another one for a copy, another machine, and after a boot. "" where the
    system does not tell."""
    try:
        boot, found = _BOOT.read_text("ascii").strip(), directory.stat()
    except OSError:
        return ""
    return f"{boot}:{found.st_dev}:{found.st_ino}"

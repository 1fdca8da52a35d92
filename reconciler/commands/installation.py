"""Which server this is: a number of the data directory, and one for each start.

Kept in `<data>/installation`, outside of all that is recovered: a server that lost its data directory is another one.
The number of a start tells a data directory that was copied apart from its original. A start's number is on disk before
anything says it, beside those of earlier starts: what they wrote is ours as well.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from pathlib import Path

log = logging.getLogger(__name__)

FILE = "installation"
_KEPT = 16
"""Earlier starts that are remembered: one that wrote nothing is forgotten with the next."""


class Installation:
    """One start of one server. `writer` is what it is called; `claim` has to be called before that is said anywhere."""

    def __init__(self, data_dir: Path, now: float | None = None) -> None:
        """`now`: seconds since 1970."""
        self.file = data_dir / FILE
        self.id, self._starts, self._fleets = self._read()
        self.start = max([int((time.time() if now is None else now) * 1_000_000), *(n + 1 for n in self._starts)])
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
        found = {"id": self.id, "starts": [*self._starts[-_KEPT:], self.start], "fleets": fleets}
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

    def _read(self) -> tuple[str, list[int], list[str]]:
        try:
            found = json.loads(self.file.read_text("ascii"))
            return str(found["id"]), [int(n) for n in found["starts"]], [str(f) for f in found.get("fleets", ())]
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read (%s): this server counts as a new one", self.file, error)
        return uuid.uuid4().hex, [], []

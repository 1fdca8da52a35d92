"""Why an encrypted file is not read. Raised by this room; no text quotes what was encrypted."""

from __future__ import annotations

from collections.abc import Iterable


class UnfitFile(Exception):
    """It is written so that nobody could read it here, whatever keys there are. `line`: from 1, 0 where there is
    none."""

    def __init__(self, message: str, hint: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message, self.hint, self.line = message, hint, line


class DamagedFile(UnfitFile):
    """The key fits, and what it opens is not what was encrypted."""


class LockedFile(Exception):
    """It is encrypted for others. `recipients`: for whom, in the file's order."""

    def __init__(self, recipients: Iterable[str]) -> None:
        self.recipients = tuple(recipients)
        super().__init__(f"it is encrypted for {', '.join(self.recipients)}")

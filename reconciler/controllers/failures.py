"""What may be said of a failure. Used by everything that tries again: controllers/, syncing/, commands/."""

from __future__ import annotations

import logging
import traceback

log = logging.getLogger(__name__)


class Expected(Exception):
    """A failure whose text may be shown and logged: it holds nothing secret. Retried like any other."""


def log_failure(what: str, key: object, error: BaseException) -> None:
    """One line: what failed and where. The text of an error that is not Expected is left out: it may quote a Secret."""
    if isinstance(error, Expected):
        log.warning("%s %s: %s", what, key, error)
        return
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "unknown place"
    log.warning("%s %s: %s at %s", what, key, type(error).__name__, where)

"""The garbage collector of a server's process. Called once by each, when it has read its programs and data."""

from __future__ import annotations

import gc

_THRESHOLDS = (50_000, 20, 20)
"""Ten thousand objects of a list or a commit are no sign of garbage: with Python's own 700 the list's answer costs half
as much again."""


def settle() -> None:
    """What is there now stays, so it need not be looked at again; and look more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)

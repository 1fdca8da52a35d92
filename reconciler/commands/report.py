"""What the reconciler's process tells `up`: one JSON object a line on its standard output."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

_EVERY = 0.2


class Report:
    """Events: `progress` (done), `loaded` (workspaces, held, commit, seconds), `held`, `mended`; with a text `note`,
    `trouble` and `refused` (there is no start)."""

    def __init__(self) -> None:
        self._last = 0.0

    def progress(self, done: int) -> None:
        """At most five times a second."""
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            self.say("progress", done=done)

    def say(self, event: str, **facts: Any) -> None:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()

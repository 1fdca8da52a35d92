"""What became of the branch's newest heads, for who pushed them: a file for each in the repository that the server
hosts, which git's hook prints (apiserver/endpoints/githooks).

Called by the holder for each head that is loaded. The words are answers'.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from apiserver.endpoints.pushhooks import VERDICTS
from reconciler.commands.answers import told
from reconciler.loading.loader import Loaded
from reconciler.plan.pushedby import NOBODY, PushedBy

log = logging.getLogger(__name__)

_MOST = 100
"""Files that are kept."""


class Verdicts:
    """Of the repository that the server hosts, None where it hosts none. `pushed_by`: who is behind a commit. From
    `begin` to `end` who pushes waits a moment for them."""

    def __init__(self, git_dir: Path | None, pushed_by: Callable[[str], PushedBy] = lambda _: NOBODY) -> None:
        self._pushed_by = pushed_by
        self._directory = git_dir / VERDICTS if git_dir is not None else None
        self._written: list[Path] = []

    def begin(self) -> None:
        self.end()
        if self._directory is not None:
            self._directory.mkdir(parents=True)

    def end(self) -> None:
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def say(self, loaded: Loaded) -> None:
        if self._directory is None:
            return
        file = self._directory / loaded.head.id
        try:
            new = file.with_suffix(".new")
            new.write_text("".join(f"{line}\n" for line in told(loaded, self._pushed_by(loaded.head.id))))
            new.replace(file)
            self._written.append(file)
            while len(self._written) > _MOST:
                self._written.pop(0).unlink(missing_ok=True)
        except OSError as error:
            log.warning("who pushed is not told what became of it: %s", error)

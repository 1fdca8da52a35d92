"""What became of the branch's newest heads, for who pushed them: a file for each in the repository that the server
hosts, which git's hook prints (apiserver/endpoints/githooks).

Called by the holder for each head that is loaded. The words are answers'.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from apiserver.endpoints.pushhooks import HELD_VERDICT, SERVED_VERDICT, VERDICTS
from apiserver.registry import pins, tree
from apiserver.storage.protocol import View
from reconciler.commands.answers import Unserved, told
from reconciler.loading.changeset import together
from reconciler.loading.loader import Loaded
from reconciler.plan.pushedby import NOBODY, PushedBy

log = logging.getLogger(__name__)

_MOST = 100
"""Files that are kept."""
_LOOKED_AT = 1000
"""Workspaces of a commit of which it is looked whether they are pinned."""


class Verdicts:
    """Of the repository that the server hosts, None where it hosts none. `pushed_by`: who is behind a commit;
    `beside`: what is not served of it that its load does not say. From `begin` to `end` who pushes waits a moment for
    them."""

    def __init__(
        self,
        git_dir: Path | None,
        pushed_by: Callable[[str], PushedBy] = lambda _: NOBODY,
        beside: Callable[[Loaded], Unserved] = lambda _: Unserved(),
    ) -> None:
        self._pushed_by, self._beside = pushed_by, beside
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
            lines = told(loaded, self._pushed_by(loaded.head.id), self._beside(loaded))
            new.write_text("".join(f"{line}\n" for line in (_word(loaded), *lines)))
            new.replace(file)
            self._written.append(file)
            while len(self._written) > _MOST:
                self._written.pop(0).unlink(missing_ok=True)
        except OSError as error:
            log.warning("who pushed is not told what became of it: %s", error)


def _word(loaded: Loaded) -> str:
    return HELD_VERDICT if loaded.problems or together(loaded.steps).held else SERVED_VERDICT


def unserved(store: View, loaded: Loaded) -> Unserved:
    """As it stands once a head is loaded. Workspaces that are held and no matter of whoever pushes are a number."""
    changes, pinned = together(loaded.steps), dict[str, str]()
    for path in islice(sorted(changes.became.keys() - changes.held.keys()), _LOOKED_AT):
        record = tree.workspace_at(store, path)
        if record is not None and record.pin:
            pinned[path] = pins.told(record.pin)
    told_of = sum(1 for path in changes.held if (found := tree.workspace_at(store, path)) is not None and found.errors)
    return Unserved(max(0, tree.count_held(store) - told_of), pinned)

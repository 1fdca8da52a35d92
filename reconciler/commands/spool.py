"""What hooks ask about pushes, and what they are answered: files below `treeplane/` in the repository that the server
hosts. The other side is apiserver/endpoints/pushhooks.

Called by pushes. A question is called as the directory in which git keeps what is pushed, of which there is one in this
repository at a time: `<name>.ask`, which becomes `<name>.taken` when it is read, and `<name>.answer`. Whoever may write
to the repository may put anything here: what is no question is not read, and goes after a minute, as does what was left
by a hook that was killed.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from apiserver.endpoints.pushhooks import ASKED, BELL, LONGEST_PUSHER, MOST_WAITING
from reconciler.repository.plainfile import read_plain
from reconciler.repository.quarantine import NAME

_SUFFIX = ".ask"
_LONGEST = 4096 + LONGEST_PUSHER
"""Bytes of a question."""
_LEFT = 60.0
"""Seconds after which nobody waits for a file any more."""
_QUESTION = re.compile(r"([0-9a-f]{40}) ([0-9a-f]{40}) (\S+)\n([^\n]*)\n")


class PushQuestion(NamedTuple):
    """About one push. `name`: of the directory in which it is kept; `old`, `new`: commits; `ref`: the full name.
    `pusher`: who pushes, as one line of JSON (see pushhooks.PUSHER); "": somebody by a path of this machine."""

    name: str
    old: str
    new: str
    ref: str
    pusher: str = ""


class Spool:
    """From `begin` to `end` hooks may ask. `wait` and what follows from it is for one thread; `ring` for any."""

    def __init__(self, git_dir: Path, left: float = _LEFT) -> None:
        """`left`: seconds after which what nobody waits for goes."""
        self._asked, self._bell, self._left = git_dir / ASKED, git_dir / BELL, left
        self._new_bell = self._bell.with_suffix(".new")
        self._pipe = -1

    def begin(self) -> None:
        """What a former self was asked is nobody's question any more. Raises OSError."""
        self.end()
        self._asked.mkdir(mode=0o700, parents=True)
        os.mkfifo(self._new_bell, 0o600)
        # For writing as well, so that it never ends, and never blocks who rings.
        self._pipe = os.open(self._new_bell, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._new_bell.rename(self._bell)  # whoever finds it is heard

    def end(self) -> None:
        pipe, self._pipe = self._pipe, -1
        for bell in (self._bell, self._new_bell):
            bell.unlink(missing_ok=True)
        shutil.rmtree(self._asked, ignore_errors=True)
        if pipe >= 0:
            os.close(pipe)

    def ring(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._pipe, b"\n")

    def wait(self, seconds: float) -> bool:
        """Whether somebody rang."""
        rang = bool(select.select([self._pipe], [], [], seconds)[0])
        with contextlib.suppress(BlockingIOError):
            while rang and len(os.read(self._pipe, 1024)) == 1024:
                pass
        return rang

    def questions(self) -> Iterator[PushQuestion]:
        """Those that wait, each once; as many at a time as hooks may ask."""
        waiting = sorted(name for name in self._names() if name.endswith(_SUFFIX))
        for file in waiting[:MOST_WAITING]:
            name = file.removesuffix(_SUFFIX)
            found = _QUESTION.fullmatch(read_plain(self._asked / file, _LONGEST)) if NAME.fullmatch(name) else None
            if found is not None and self._take(name):
                yield PushQuestion(name, *found.groups())

    def answer(self, name: str, text: str) -> None:
        """Raises OSError."""
        new = self._asked / f"{name}.answer.new"
        new.write_text(text)
        new.rename(self._asked / f"{name}.answer")

    def sweep(self) -> None:
        """Takes away what nobody waits for any more."""
        for name in self._names():
            file = self._asked / name
            with contextlib.suppress(OSError):
                if time.time() - file.lstat().st_mtime > self._left:
                    shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()

    def _names(self) -> list[str]:
        try:
            return [file.name for file in self._asked.iterdir()]
        except OSError:
            return []

    def _take(self, name: str) -> bool:
        """False: who asked has gone."""
        with contextlib.suppress(OSError):
            (self._asked / f"{name}{_SUFFIX}").rename(self._asked / f"{name}.taken")
            return True
        return False

"""The command that started this server, with one option more: what a message prints so that it can be typed as it is.

Credentials in a URL are not printed; the repository need not be named again (see up).
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from apiserver.model.redaction import redact


def typed(words: Sequence[str]) -> tuple[str, ...]:
    """A command line as it may be shown: the program as it can be called from here, nothing secret."""
    program, *rest = words
    shown = program if shutil.which(Path(program).name) != program else Path(program).name
    if Path(shown).is_absolute():
        near = os.path.relpath(shown)
        shown = shown if near.startswith("..") else f"./{near}"
    return shown, *(word for word in rest if redact(word) == word)


def again(words: Sequence[str], option: str, value: str) -> str:
    """The command line `words` with `option` set to `value`, instead of what it was."""
    kept: list[str] = []
    skipped = False
    for word in words:
        if skipped:
            skipped = False
        elif word == option:
            skipped = True
        elif not word.startswith(f"{option}="):
            kept.append(word)
    return shlex.join([*kept, option, value])

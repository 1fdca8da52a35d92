"""The command that started this server, with one option more: what a message prints so that it can be typed as it is.

Credentials in a URL are not printed; the repository need not be named again (see up). Where an option's value has some,
there are three dots in its place: whoever types it knows what belongs there.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from apiserver.model.redaction import redact

LEFT_OUT = "..."
"""What is typed there is secret."""


def typed(words: Sequence[str]) -> tuple[str, ...]:
    """A command line as it may be shown: the program as it can be called from here, nothing secret."""
    program, *rest = words
    shown = program if shutil.which(Path(program).name) != program else Path(program).name
    if Path(shown).is_absolute():
        near = os.path.relpath(shown)
        shown = shown if near.startswith("..") else f"./{near}"
    return shown, *filter(None, map(_shown, ["", *rest], rest))


def _shown(before: str, word: str) -> str:
    """ "" for what need not be typed. `before`: the word before it, "" for none."""
    if redact(word) == word:
        return word
    option, given, _ = word.partition("=")
    if option.startswith("--") and given:
        return f"{option}={LEFT_OUT}"
    return LEFT_OUT if before.startswith("--") and "=" not in before else ""


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

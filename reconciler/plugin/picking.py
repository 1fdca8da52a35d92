"""`kubectl ws -i`: a workspace, picked with the arrow keys. What is typed filters; right goes into a workspace, left
out of it, Enter takes the one that is marked, Esc or Ctrl-C none.

It draws on standard error, so that what is printed afterwards can be read by programs.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.plugin.errors import USAGE, PluginError
from reconciler.plugin.saying import shown

_KEYS = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x10": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x0e": "down",
    b"\x1b[C": "in", b"\x1bOC": "in", b"\t": "in", b"\x1b[D": "out", b"\x1bOD": "out",
    b"\r": "take", b"\n": "take", b"\x7f": "less", b"\x08": "less",
    b"\x1b": "leave", b"\x03": "leave", b"\x04": "leave",
}  # fmt: skip
_HINT = "arrows: choose, in, out · type to filter · Enter: go there · Esc: stay"
_ESCAPE_SECONDS = 0.05
"""How long the rest of an arrow key may take to come."""


class Picker:
    """What is shown, as keys come. `below` gives names of the workspaces below a path."""

    def __init__(self, path: str, below: Callable[[str], list[str]]) -> None:
        self._below = below
        self.path, self.typed, self.at = path, "", 0
        self._names = below(path)

    def choices(self) -> list[str]:
        """The workspace itself first, then those below it whose names have in them what was typed."""
        names = [name for name in self._names if self.typed.lower() in name.lower()]
        return names if self.typed else ["", *names]

    def marked(self) -> str:
        """A path; "" where nothing fits."""
        choices = self.choices()
        if not choices:
            return ""
        name = choices[min(self.at, len(choices) - 1)]
        return f"{self.path}:{name}" if name else self.path

    def press(self, key: str) -> None:
        """`up`, `down`, `in`, `out`, `less`, or a character."""
        match key:
            case "up" | "down":
                count = max(1, len(self.choices()))
                self.at = (self.at + (1 if key == "down" else -1)) % count
            case "in":
                self._go(self.marked() or self.path)
            case "out":
                self._go(self.path.rpartition(":")[0] or self.path)
            case "less":
                self.typed, self.at = self.typed[:-1], 0
            case _:
                self.typed, self.at = self.typed + key, 0

    def lines(self, rows: int, columns: int) -> list[str]:
        """At most `rows`, with the marked one among them."""
        choices = self.choices()
        room = max(1, rows - 2)
        first = max(0, min(self.at - room // 2, len(choices) - room))
        marked = min(self.at, len(choices) - 1)
        in_sight = enumerate(choices[first : first + room], first)
        found = [f"{'>' if at == marked else ' '} {name or '.'}" for at, name in in_sight]
        head = f"{self.path}:{self.typed}" if self.typed else self.path
        told = map(shown, [head, *(found or ["  nothing fits"]), _HINT])
        return [line[: max(1, columns - 1)] for line in told]

    def _go(self, path: str) -> None:
        if path != self.path:
            self.path, self.typed, self.at = path, "", 0
            self._names = self._below(path)


def pick(path: str, below: Callable[[str], list[str]]) -> str:
    """The path that was taken; "" for none. Raises PluginError where there is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise PluginError("-i needs a terminal: name the workspace instead, or list them with: kubectl ws tree", USAGE)
    picker = Picker(path, below)
    drawn = 0
    with _raw(sys.stdin.fileno()):
        while True:
            drawn = _draw(picker, drawn)
            key = _key(sys.stdin.fileno())
            if key in ("take", "leave"):
                _write(f"\x1b[{drawn}A\r\x1b[J")
                return picker.marked() if key == "take" else ""
            if key:
                picker.press(key)


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Keys come one by one, and Ctrl-C is one; the terminal is as it was afterwards."""
    before = termios.tcgetattr(terminal)
    tty.setraw(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _draw(picker: Picker, drawn: int) -> int:
    """Over what was drawn before; how many lines it took."""
    columns, rows = _size()
    lines = picker.lines(rows - 1, columns)
    _write(f"\x1b[{drawn}A" if drawn else "")
    _write("\r\x1b[J" + "".join(f"{line}\r\n" for line in lines))
    return len(lines)


def _size() -> tuple[int, int]:
    columns, rows = os.get_terminal_size(sys.stderr.fileno())
    return columns or 80, rows or 24


def _key(terminal: int) -> str:
    """The next one's name, or its character; "" for one that means nothing. The end of input leaves."""
    found = os.read(terminal, 1)
    if not found:
        return "leave"
    if found == b"\x1b":
        while len(found) < 3 and select.select([terminal], [], [], _ESCAPE_SECONDS)[0]:
            found += os.read(terminal, 1)
    named = _KEYS.get(found)
    if named is not None:
        return named
    character = found.decode(errors="ignore")
    return character if character.isprintable() and len(character) == 1 else ""


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()

"""The picker: what keys do, what is drawn, and that the terminal is as it was afterwards."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.plugin.picking import Picker

TREE = {"root": ["infra", "shop"], "root:shop": ["db", "web"], "root:shop:web": ["deep"]}


def picker(path: str = "root") -> Picker:
    return Picker(path, lambda path: TREE.get(path, []))


@pytest.mark.parametrize(
    ("keys", "marked"),
    [
        ([], "root"),
        (["down"], "root:infra"),
        (["down", "down"], "root:shop"),
        (["up"], "root:shop"),
        (["down", "down", "down"], "root"),
        (["s"], "root:shop"),
        (["S", "H"], "root:shop"),
        (["x"], ""),
        (["x", "down", "up", "less", "down"], "root:infra"),
        (["s", "in"], "root:shop"),
        (["s", "in", "down", "down", "in", "d", "in"], "root:shop:web:deep"),
        (["s", "in", "out"], "root"),
        (["out"], "root"),
    ],
)
def test_keys(keys: list[str], marked: str) -> None:
    shown = picker()
    for key in keys:
        shown.press(key)
    assert shown.marked() == marked


@given(
    st.lists(st.sampled_from(["up", "down", "in", "out", "less", "s", "e", "z"])), st.integers(1, 9), st.integers(1, 30)
)
def test_whatever_is_pressed_it_fits_and_shows_what_is_marked(keys: list[str], rows: int, columns: int) -> None:
    shown = picker()
    for key in keys:
        shown.press(key)
    lines = shown.lines(rows, columns)
    assert len(lines) <= max(3, rows)
    assert all(len(line) < max(2, columns) for line in lines)
    marked = [line for line in shown.lines(rows, 200) if line.startswith(">")]
    assert len(marked) == bool(shown.choices())


def test_names_that_a_terminal_would_obey_are_spelled() -> None:
    assert "\x1b" not in "".join(Picker("root", lambda _: ["\x1b[2J"]).lines(9, 80))


@pytest.fixture
def terminal(config: Path) -> Callable[[bytes], tuple[int, str, str, bool]]:
    def run(keys: bytes) -> tuple[int, str, str, bool]:
        """The exit code, standard output, what the terminal got, and whether it is as it was."""
        outer, inner = pty.openpty()
        before = termios.tcgetattr(inner)
        command = [sys.executable, "-m", "reconciler.plugin.ws", "-i"]
        drawn = b""
        environment = {**os.environ, "KUBECONFIG": str(config)}
        with subprocess.Popen(
            command, env=environment, stdin=inner, stderr=inner, stdout=subprocess.PIPE, text=True
        ) as process:
            while b"Enter" not in drawn:
                drawn += os.read(outer, 4096)
            os.write(outer, keys)
            out, _ = process.communicate(timeout=60)
            code = process.returncode
        same = termios.tcgetattr(inner) == before
        os.close(inner)
        os.set_blocking(outer, False)
        with suppress(OSError):
            while more := os.read(outer, 4096):
                drawn += more
        os.close(outer)
        return code, out, drawn.decode(), same

    return run


def test_in_a_terminal(terminal: Callable[[bytes], tuple[int, str, str, bool]], config: Path) -> None:
    code, out, drawn, same = terminal(b"\x1b[B\x1b[B\x1b[Cwe\r")
    assert (code, out) == (0, "Current workspace is 'root:shop:web' (type root:universal).\n")
    assert same
    assert re.search(r"> \.\r\n  infra\r\n  shop\r\n", drawn)
    assert "/clusters/root:shop:web" in config.read_text()


@pytest.mark.parametrize("pressed", [b"\x1b", b"\x03", b"\x1b[B\x04"])
def test_to_leave_is_to_stay(
    terminal: Callable[[bytes], tuple[int, str, str, bool]], config: Path, pressed: bytes
) -> None:
    before = config.read_text()
    code, out, _, same = terminal(pressed)
    assert (code, out, same) == (0, "Current workspace is 'root' (type root:universal).\n", True)
    assert config.read_text() == before


def test_without_a_terminal_it_says_so(config: Path) -> None:
    command = [sys.executable, "-m", "reconciler.plugin.ws"]
    for more, why in ((["-i"], "-i needs a terminal"), (["-i", "tree"], "-i goes without: tree")):
        done = subprocess.run(
            [*command, *more],
            env={**os.environ, "KUBECONFIG": str(config)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert (done.returncode, why in done.stderr, done.stdout) == (2, True, "")

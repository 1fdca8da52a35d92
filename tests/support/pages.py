"""A page of docs/ is typed as it stands: its commands into one shell, `treeplane up` into a terminal of its own.

A block ```sh is typed line for line. A block ```text after it is what its last command prints: each of its lines has to
be there, in this order, `…` standing for anything. What takes a while is looked at again, by the last command alone, so
that one has to be such that typing it twice does no harm. Where the text says "(Ctrl-C", the server is stopped.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SECONDS = 90.0
"""How long what a page shows may take to be so; pages promise less, machines of tests are slow."""

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SERVE = "treeplane up "
_STOP = "(Ctrl-C"


class Step(NamedTuple):
    typed: str
    """Lines for a shell."""

    shown: str
    """What the last of them prints, as the page has it; "" if the page does not say."""


def steps(page: Path) -> list[Step]:
    """The page's commands, in its order."""
    found: list[Step] = []
    whole, after = page.read_text(), 0
    for block in _BLOCK.finditer(whole):
        if _STOP in whole[after : block.start()]:
            found.append(Step(_STOP, ""))
        after = block.end()
        language, text = block.groups()
        if language == "sh":
            found.append(Step(text, ""))
        elif language == "text":
            found[-1] = found[-1]._replace(shown=text)
    return found


def is_shown(shown: str, said: str) -> bool:
    """Whether the lines of a page are among those that were printed, in this order."""
    lines: Iterator[str] = iter(line.rstrip() for line in said.splitlines())
    for wanted in shown.splitlines():
        pattern = re.compile(r"\s*".join(".*".join(map(re.escape, w.split("…"))) for w in wanted.split()))
        if wanted.strip() not in ("", "…") and not any(pattern.match(line.strip()) for line in lines):
            return False
    return True


class Typist:
    """Types a page. `environment` is that of its shells; the directory begins as `folder`."""

    def __init__(self, folder: Path, environment: Mapping[str, str], eventually: Callable[..., object]) -> None:
        self._folder, self._eventually = folder, eventually
        self._environment = dict(environment)
        self._state = folder / ".shell"
        self._state.write_text(f"cd '{folder}'\n")
        self._server: subprocess.Popen[str] | None = None
        self._served = folder / "served.log"

    def type(self, step: Step) -> None:
        """One block. AssertionError with what was printed if it fails, or prints something else."""
        if step.typed == _STOP:
            self.stop()
            return
        if step.typed.startswith(_SERVE):
            self._serve(step.typed)
            return
        said = self.run(step.typed)
        last = _last(step.typed)

        def shown() -> bool:
            nonlocal said
            if not is_shown(step.shown, said):
                said = self.run(last)
            assert is_shown(step.shown, said), f"{last}\nprints\n{said}\nand not\n{step.shown}\n{self.told()}"
            return True

        self._eventually(shown, SECONDS)

    def told(self) -> str:
        """What the server printed."""
        return self._served.read_text() if self._served.exists() else ""

    def stop(self) -> None:
        """Ctrl-C in the first terminal."""
        if self._server is not None:
            self._server.send_signal(signal.SIGINT)
            self._server.wait(30)
            self._server = None

    def _serve(self, line: str) -> None:
        self.stop()
        with self._served.open("w") as log:
            script = f". '{self._state}'\nexec {line}"
            self._server = subprocess.Popen(
                ["bash", "-ec", script],
                env=self._environment,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        server = self._server
        self._eventually(lambda: server.poll() is not None or "export KUBECONFIG=" in self.told(), SECONDS)
        assert server.poll() is None, self.told()

    def run(self, lines: str) -> str:
        """The lines in a shell that goes on where the one before ended: its directory and what it exported.
        What they print; AssertionError if they fail."""
        script = f". '{self._state}'\n{lines}\n{{ declare -px; echo \"cd '$PWD'\"; }} > '{self._state}'"
        done = subprocess.run(
            ["bash", "-ec", script], env=self._environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout}{done.stderr}{self.told()}"
        return done.stdout + done.stderr


def _last(typed: str) -> str:
    """The last command of a block, which may have gone over several lines with a heredoc before it."""
    return typed.rstrip("\n").rsplit("\n", 1)[-1]

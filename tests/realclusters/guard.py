"""A process that outlives the tests by a moment: it ends the cluster processes that the tests left behind.

Started by processes.py with a pipe as standard input; each line is `+PID` (watch over it) or `-PID` (it has ended).
When the pipe closes, because its holder ended in whatever way, what is left gets SIGKILL. (The kernel's own
parent-death signal would fire when the starting *thread* ends, and clusters are started in threads.)
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    watched: set[int] = set()
    for line in sys.stdin:
        (watched.add if line[0] == "+" else watched.discard)(int(line[1:]))
    for pid in watched:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()

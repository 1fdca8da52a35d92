"""Work whose size somebody else's files decide: each in a process of its own, which is killed when it is too much.

Called by viewer. A job is a fork of this process, which has no threads: it has all modules at hand and begins at once,
and what it took of memory is gone with it. It gets so much time, memory and disk; what it started ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from apiserver.model.errors import StatusError
from apiserver.model.failures import described

log = logging.getLogger(__name__)

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class JobLimits:
    """`at_once`: processes; `of_user`: jobs of one user that are under way or wait; `waiting`: of all. `seconds`,
    `memory` (bytes of its own) and `file` (bytes of the largest one that it writes): of each."""

    at_once: int = 2
    of_user: int = 2
    waiting: int = 32
    seconds: float = 30.0
    memory: int = 1024 * _MIB
    file: int = 1024 * _MIB


class BoundedJobs:
    """Of one event loop."""

    def __init__(self, limits: JobLimits) -> None:
        self._limits = limits
        self._free = asyncio.Semaphore(limits.at_once)
        self._users: Counter[str] = Counter()

    @property
    def busy(self) -> bool:
        """Whether any is under way, or waits."""
        return bool(self._users)

    async def run(self, user: str, work: Callable[[], bytes]) -> bytes:
        """What `work` returns, in a process of its own. Raises StatusError: 429 where the user, or all together, have
        too many; 503 where it took too much, or failed."""
        if self._users[user] >= self._limits.of_user or self._users.total() >= self._limits.waiting:
            whose = "yours" if self._users[user] >= self._limits.of_user else "others'"
            text = f"too many commits of {whose} are being read at a time; please try again"
            raise StatusError(429, "TooManyRequests", text, retry_after=1)
        self._users[user] += 1
        try:
            async with self._free:
                return await self._done(work)
        finally:
            self._users[user] -= 1
            if not self._users[user]:
                del self._users[user]

    async def _done(self, work: Callable[[], bytes]) -> bytes:
        mine, its = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(mine)
            _work(work, its, self._limits)
        os.close(its)
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await _all(mine)
        except TimeoutError:
            text = f"reading the commit takes more than {self._limits.seconds:.0f} s"
            raise StatusError(503, "ServiceUnavailable", text) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # with all that it started
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


async def _all(pipe: int) -> bytes:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(pipe, "rb"))
    try:
        found = await reader.read()
    finally:
        transport.close()
    if not found:
        raise StatusError(503, "ServiceUnavailable", "the commit could not be read: it takes too much memory or disk")
    return found


def _work(work: Callable[[], bytes], pipe: int, limits: JobLimits) -> NoReturn:
    """In the new process. It ends here, whatever happens."""
    try:
        gc.freeze()  # what was garbage before is not this process's to end, which has none of the threads that know it
        # A signal to it is not one to its parent, and neither is it asked to end by the parent's terminal.
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        signal.alarm(int(limits.seconds) + 5)  # where the parent is gone
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory, limits.memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file, limits.file))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        found = work()
        while found:
            found = found[os.write(pipe, found) :]
    except BaseException as error:
        log.error("a commit could not be read\n%s", described(error))
    finally:
        os._exit(0)

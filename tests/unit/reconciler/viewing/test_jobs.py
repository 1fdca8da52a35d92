"""Work in processes of its own: what it may take, and how many there are."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from apiserver.model.errors import StatusError
from reconciler.viewing.jobs import BoundedJobs, JobLimits

MIB = 1024 * 1024


def run(made: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(made, 60))


async def refused(jobs: BoundedJobs, work: Callable[[], bytes], user: str = "ann") -> StatusError:
    with pytest.raises(StatusError) as told:
        await jobs.run(user, work)
    return told.value


def test_its_answer_comes_back_from_another_process() -> None:
    async def scenario() -> None:
        jobs = BoundedJobs(JobLimits())
        answers = await asyncio.gather(*(jobs.run(user, lambda: b"%d" % os.getpid()) for user in "abcd"))
        assert len({*answers, b"%d" % os.getpid()}) == 5
        large = await jobs.run("ann", lambda: b"x" * MIB)
        assert len(large) == MIB
        assert not jobs.busy

    run(scenario())


class Left:
    """In a circle that only the garbage collector ends."""

    ended = 0

    def __init__(self) -> None:
        self.circle = self

    def __del__(self) -> None:
        Left.ended += 1


def test_what_was_garbage_before_is_none_of_its_business() -> None:
    """The end of a store, say, waits for threads that this process has and the new one has not."""

    def collected() -> bytes:
        gc.collect()
        return b"%d" % Left.ended

    gc.disable()
    try:
        Left()
        assert run(BoundedJobs(JobLimits()).run("ann", collected)) == b"0"
    finally:
        gc.enable()
    gc.collect()
    assert Left.ended == 1


def forever(pid: Path) -> bytes:
    """With something that it started."""
    process = subprocess.Popen(["sleep", "1000"])
    pid.write_text(str(process.pid))
    process.wait()
    return b"done"


def is_there(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # gone before it was opened, or before it was read
        return False


def test_what_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        jobs = BoundedJobs(JobLimits(seconds=6))  # in which it has surely begun
        began = time.monotonic()
        told = await refused(jobs, lambda: forever(tmp_path / "pid"))
        assert (told.code, time.monotonic() - began < 30) == (503, True)
        assert "takes more than 6 s" in told.message
        started = int((tmp_path / "pid").read_text())
        while is_there(started):
            await asyncio.sleep(0.01)
        assert await jobs.run("ann", lambda: b"next") == b"next"

    run(scenario())


@pytest.mark.parametrize("work", [
    lambda: b"x" * (512 * MIB),
    lambda: os.kill(os.getpid(), signal.SIGKILL) or b"",
    lambda: 1 / 0 or b"",
    lambda: os._exit(3),
])  # fmt: skip
def test_what_takes_too_much_or_fails_is_told(work: Any) -> None:
    async def scenario() -> None:
        told = await refused(BoundedJobs(JobLimits(memory=256 * MIB)), work)
        assert told.code == 503

    run(scenario())


def test_a_file_that_is_too_large_is_not_written(tmp_path: Path) -> None:
    def work() -> bytes:
        (tmp_path / "large").write_bytes(b"x" * (3 * MIB))
        return b"written"

    async def scenario() -> None:
        assert (await refused(BoundedJobs(JobLimits(file=MIB)), work)).code == 503
        assert (tmp_path / "large").stat().st_size <= MIB

    run(scenario())


def test_who_asks_for_too_many_waits(tmp_path: Path) -> None:
    """Two of a user's, others' beside them, and so many of all."""

    def work() -> bytes:
        while not (tmp_path / "go").exists():
            time.sleep(0.01)
        return b"done"

    async def scenario() -> None:
        jobs = BoundedJobs(JobLimits(waiting=4))
        under_way = [asyncio.ensure_future(jobs.run(user, work)) for user in ("ann", "ann", "bob", "bob")]
        await asyncio.sleep(0)
        told = await refused(jobs, work)
        assert (told.code, told.retry_after, "of yours" in told.message) == (429, 1, True)
        told = await refused(jobs, work, "eve")
        assert (told.code, "of others'" in told.message) == (429, True)
        (tmp_path / "go").touch()
        assert await asyncio.gather(*under_way) == [b"done"] * 4
        assert await jobs.run("ann", work) == b"done"

    run(scenario())


def test_a_signal_to_it_is_not_one_to_its_parent() -> None:
    async def scenario() -> None:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, heard.set)
        told = await refused(
            BoundedJobs(JobLimits()), lambda: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(30) or b""
        )
        assert told.code == 503
        await asyncio.sleep(0)
        assert not heard.is_set()
        loop.remove_signal_handler(signal.SIGTERM)

    run(scenario())

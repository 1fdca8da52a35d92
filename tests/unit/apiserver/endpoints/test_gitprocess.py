"""Programs that serve a request: nothing of them stays."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from apiserver.endpoints.gitprocess import running


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_process_that_has_ended_leaves_nothing_for_the_garbage_collector(
    run: Callable[[Awaitable[int]], Any],
) -> None:
    async def left(times: int) -> int:
        """Objects that only the garbage collector lets go of."""
        for _ in range(times):
            async with running(["true"], {"PATH": "/usr/bin:/bin"}) as process:
                assert await process.wait() == 0
        await asyncio.sleep(0)
        return gc.collect()

    async def measured() -> int:
        await left(3)
        return await left(20)

    gc.disable()
    try:
        assert run(measured()) < 20
    finally:
        gc.enable()

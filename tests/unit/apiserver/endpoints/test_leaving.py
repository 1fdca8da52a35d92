"""A client that goes away while its write waits for a commit is noticed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from apiserver.endpoints.exchange import Exchange
from apiserver.endpoints.writes import _while_there
from apiserver.registry.waiter import Waiter


class Client:
    def __init__(self) -> None:
        self.waiter, self.gone, self.left = Waiter(), asyncio.Event(), asyncio.Event()
        self.waiter.on_leaving(self.left.set)
        scope: Any = {"method": "POST", "path": "/", "headers": [], "query_string": b""}
        self.exchange = Exchange(scope, self._receive, self._send)

    async def _receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, _message: Any) -> None: ...

    async def work(self) -> str:
        await self.left.wait()
        return "withdrawn"


def test_a_disconnect_withdraws() -> None:
    async def run() -> None:
        client = Client()
        serving = asyncio.ensure_future(_while_there(client.exchange, client.waiter, client.work()))
        await asyncio.sleep(0)
        assert not client.waiter.left
        client.gone.set()
        assert await serving == "withdrawn"
        assert client.waiter.left

    asyncio.run(run())


def test_so_does_the_end_of_the_requests_time() -> None:
    async def run() -> None:
        client = Client()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await _while_there(client.exchange, client.waiter, client.work())
        assert client.waiter.left

    asyncio.run(run())


def test_an_answer_that_is_there_ends_the_watching() -> None:
    async def run() -> None:
        client = Client()
        assert await _while_there(client.exchange, client.waiter, asyncio.sleep(0, "done")) == "done"
        client.gone.set()
        await asyncio.sleep(0)
        assert not client.waiter.left

    asyncio.run(run())

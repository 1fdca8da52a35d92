"""What counting costs: a GET beside the same one that nobody counts, and a scrape.

    .venv/bin/python bench/metrics.py [--requests 20000]

One process, no network: what a request costs here is less than over TLS, so the share is an upper bound. Both are
taken in turns, a thousand requests at a time, and the quickest turn of each counts: whatever else runs on the machine
makes others slower.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import table
from support.tenancy import Sent, Tenancy, bearer
from support.tenants import ADMIN

from apiserver.metrics import pending, place
from apiserver.scrape.answer import scraped

EXPECTED = 2.0
"""Percent of a GET over TLS, which costs about 90 µs (bench/api.py)."""
GET_OVER_TLS = 90e-6
TURN = 1000
PATH = "/clusters/root:ann/api/v1/namespaces/default/configmaps/mine"


class Uncounted:
    """In place of the counts."""

    def begin(self, _: Any) -> float:
        return 0.0

    def end(self, _: Any, __: float) -> None:
        pass

    def waits(self, _: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    turns = max(2, parser.parse_args().requests // TURN // 2)
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        directory = Path(name)
        place.empty(directory)
        place.begin(directory, "api-1")
        fleet = Tenancy(directory / "fleet")
        fleet.plant()
        try:
            counting, plain = asyncio.run(measured(fleet, turns))
            began = time.perf_counter()
            kind, text = scraped(fleet.store, fleet.app.settings)
            scrape = time.perf_counter() - began
        finally:
            fleet.close()
    more = counting - plain
    rows = [
        ["a GET that is counted", f"{counting * 1e6:.1f} µs"],
        ["that is not", f"{plain * 1e6:.1f} µs"],
        ["counting", f"{more * 1e6:.2f} µs"],
        ["of a GET over TLS", f"{100 * more / GET_OVER_TLS:.1f} %, expected at most {EXPECTED:.0f} %"],
        ["a scrape", f"{scrape * 1e3:.1f} ms, {len(text) / 1024:.0f} KiB, {kind.decode().partition(';')[0]}"],
    ]
    table("What metrics cost (CPU)", [["", ""], *rows])


async def measured(fleet: Tenancy, turns: int) -> tuple[float, float]:
    """Seconds of CPU of a request, counted and not."""
    kube: Any = fleet.app
    counts, spent = kube._counts, {True: [], False: []}
    scope = Sent(path=PATH, headers=(bearer(ADMIN),)).scope()
    for turn in range(2 * turns):
        counted = bool(turn % 2)
        kube._counts = counts if counted else Uncounted()
        began = time.process_time()
        for _ in range(TURN):
            await asked(kube, scope)
        if counted:
            pending.flush()  # what the thread that writes costs counts as well
        spent[counted].append((time.process_time() - began) / TURN)
    return min(spent[True]), min(spent[False])


async def asked(kube: Any, scope: Any) -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    await kube(dict(scope), receive, send)


if __name__ == "__main__":
    main()

"""What counting costs beside the GET that is counted, and what a scrape costs.

    .venv/bin/python bench/metrics.py [--requests 20000]

One process, no network. Counting is a small part of a request, smaller than what two runs of the same differ by; so it
is measured by itself, with what writing it to files costs, and held against whole requests of the same run. Of each the
quickest turn of a thousand counts. Over TLS a GET costs about twice what it does here (bench/api.py), so the share of
one is about half of what is printed.
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

from apiserver.endpoints.kubeexchange import KubeExchange
from apiserver.endpoints.paths import parse
from apiserver.metrics import pending, place
from apiserver.registry.kinds import common_builtins
from apiserver.scrape.answer import scraped

EXPECTED = 2.0
"""Percent of a GET, even without network."""
TURN = 1000
PATH = "/clusters/root:ann/api/v1/namespaces/default/configmaps/mine"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    turns = max(2, parser.parse_args().requests // TURN)
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        directory = Path(name)
        place.empty(directory)
        place.begin(directory, "api-1")
        fleet = Tenancy(directory / "fleet")
        fleet.plant()
        try:
            whole, counting = asyncio.run(measured(fleet, turns))
            scraped(fleet.store, fleet.app.settings)
            began = time.process_time()
            _, text = scraped(fleet.store, fleet.app.settings)
            scrape = time.process_time() - began
        finally:
            fleet.close()
    rows = [
        ["a GET", f"{whole * 1e6:.1f} µs"],
        ["counting it", f"{counting * 1e6:.2f} µs"],
        ["share", f"{100 * counting / whole:.1f} %, expected at most {EXPECTED:.1f} %"],
        ["a scrape", f"{scrape * 1e3:.0f} ms, {len(text) / 1024:.0f} KiB"],
    ]
    table("What metrics cost (CPU)", [["", ""], *rows])


async def measured(fleet: Tenancy, turns: int) -> tuple[float, float]:
    """Seconds of CPU: of a request, and of counting one."""
    kube: Any = fleet.app
    scope = Sent(path=PATH, headers=(bearer(ADMIN),)).scope()
    exchange = KubeExchange(scope, None, None)  # type: ignore[arg-type]
    [kind] = [kind for kind in common_builtins().all() if kind.qualified == "configmaps"]
    exchange.place, exchange.verb, exchange.kind, exchange.status = parse(PATH), "get", kind, 200
    requests, counts = [], []
    for _ in range(turns):
        began = time.process_time()
        for _ in range(TURN):
            await asked(kube, scope)
        requests.append((time.process_time() - began) / TURN)
        began = time.process_time()
        for _ in range(TURN):
            kube._counts.end(exchange, kube._counts.begin(exchange))
        pending.flush()
        counts.append((time.process_time() - began) / TURN)
    return min(requests), min(counts)


async def asked(kube: Any, scope: Any) -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200

    await kube(dict(scope), receive, send)


if __name__ == "__main__":
    main()

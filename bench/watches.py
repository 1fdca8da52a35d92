"""Many open watches on one server: how much memory each takes, and how long an event takes to reach all of them.

    .venv/bin/python bench/watches.py [--watches 10000] [--events 20]

All watch the same ConfigMaps over TLS, each on a connection of its own, as Go clients without HTTP/2 do. One worker.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from api import config_map, maps, served
from apiclient import Server, Watches, load
from measure import milliseconds, percentile, size, table, usage, verdict
from support.plane import Credentials, Plane

MOST_MEMORY = 64 * 1024
"""Expected at most, per watch, TLS included."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--watches", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=20)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with (
        tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name,
        served(Path(name), "--workers", "1", "--max-connections-per-address", "0") as plane,
    ):
        uvloop.run(run(plane, options.watches, options.events))


async def run(plane: Plane, count: int, events: int) -> None:
    server = Server("treeplane", Credentials.read(plane.kubeconfig), "/clusters/root:bench", plane.pids)
    space, name = "default", "subject"
    await load(server, [server.request("POST", maps(space), config_map(space, name))], 1)
    [worker] = [pid for pid in plane.pids() if (found := usage(pid)) and found.name == "apiserver"]
    watches = Watches(server, server.request("GET", f"{maps(space)}?watch=1&fieldSelector=metadata.name={name}"))
    await watches.open(1)
    before = usage(worker)
    opened = watches.expect(1)
    begin, cpu = time.perf_counter(), server.cpu()
    await watches.open(count)
    await asyncio.wait_for(opened if count > 1 else asyncio.sleep(0), 120)
    opening, opening_cpu = time.perf_counter() - begin, server.cpu() - cpu
    times = await follow(server, watches, events, space, name)
    after = usage(worker)
    watches.close()
    assert before is not None and after is not None
    each = (after.own - before.own) / count
    table(
        f"{count} watches on one worker",
        [
            ["opened", f"{count / opening:.0f}/s", f"{opening_cpu / count * 1000:.2f} ms CPU each"],
            ["memory each", size(each), f"expected at most {size(MOST_MEMORY)}: {verdict(each <= MOST_MEMORY)}"],
            [
                "an event reaches all",
                f"{milliseconds(percentile(times, 0.5))} p50",
                milliseconds(max(times)) + " at most",
            ],
            ["a delivery", f"{percentile(times, 0.5) / count * 1e6:.1f} µs", ""],
        ],
    )


async def follow(server: Server, watches: Watches, events: int, space: str, name: str) -> list[float]:
    """Seconds from the begin of each write until the last watch has it."""
    writer = await server.connect()
    times = []
    for number in range(events):
        everyone = watches.expect(number + 2)
        begin = time.perf_counter()
        await writer.send(server.request("PUT", maps(space, name), config_map(space, name, str(number))))
        await asyncio.wait_for(everyone, 120)
        times.append(time.perf_counter() - begin)
    writer.transport.close()
    return times


if __name__ == "__main__":
    main()

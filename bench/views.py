"""A provider's view over many consumers: lists of all their objects, and one watch while all of them write.

    .venv/bin/python bench/views.py [--consumers 1000] [--objects 100]

The consumers and their objects are pushed in one commit; each takes the provider's export by its type. Then the view is
listed, whole and in pages; one watch of it is opened, and each consumer makes an object; and the provider answers each
of them through the view, as its controller would.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from apiclient import Connection, Server, Watches, load
from load import FLEET
from measure import milliseconds, percentile, size, table
from support.consumers import CONSUMER, consumer_type
from support.plane import Clone, Credentials, Plane, PlaneError, environment
from support.widgets import export, schema, widget

TYPE = consumer_type("root:provider", "widgets")
WIDGETS = "/apis/example.io/v1/widgets"
INSIDE = "/apis/example.io/v1/namespaces/default/widgets"
CLIENTS, PAGE, PAGES, LONGEST = 16, 500, 9, 900.0


@dataclass(frozen=True, slots=True)
class Place:
    """`view`: requests to it begin there."""

    plane: Plane
    view: Server

    def of(self, path: str) -> Server:
        return Server(path, self.view.credentials, path, self.plane.pids)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--consumers", type=int, default=1_000)
    parser.add_argument("--objects", type=int, default=100, help="of each consumer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        for path, text in seed().items():
            (folder / "seed" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "seed" / path).write_text(text)
        with Plane(folder / "seed", folder / "data") as plane:
            push(plane.clone(folder / "clone"), options.consumers, options.objects)
            uvloop.run(run(plane, options.consumers, options.objects))


def seed() -> dict[str, str]:
    root = "workspaces/root"
    return {
        "treeplane.yaml": FLEET,
        f"{root}/type.yaml": TYPE,
        f"{root}/provider/workspace.yaml": "",
        f"{root}/provider/schema.json": schema(note={"type": "string"}),
        f"{root}/provider/export.json": export(),
    }


def push(clone: Clone, consumers: int, objects: int) -> None:
    branch = clone.git("symbolic-ref", "HEAD").strip()
    lines = [f"commit {branch}\ncommitter bench <bench@example.com> now\ndata 1\nx\nfrom {branch}^0\n"]
    content = "\n---\n".join(widget(name=f"w{number}", size=number) for number in range(objects))
    for number in range(consumers):
        folder = f"workspaces/root/{number % 256:02x}/c{number}"
        for file, text in (("workspace.yaml", CONSUMER), ("widgets.yaml", content)):
            lines.append(f"M 100644 inline {folder}/{file}\ndata {len(text)}\n{text}\n")
    command = ["git", "-C", str(clone.folder), "fast-import", "--quiet", "--date-format=now"]
    subprocess.run(command, input="".join(lines).encode(), env=environment(), check=True)
    clone.push("origin", "HEAD")


async def run(plane: Plane, consumers: int, objects: int) -> None:
    path = "/services/apiexport/root:provider/widgets/clusters/*"
    place = Place(plane, Server("view", Credentials.read(plane.kubeconfig), path, plane.pids))
    begin = time.perf_counter()
    await until_there(place, consumers * objects)
    clusters = {item["metadata"]["annotations"]["kcp.io/cluster"] for item in await listed(place)}
    if len(clusters) != consumers:
        raise PlaneError(f"{len(clusters)} consumers instead of {consumers}")
    print(f"{consumers} consumers with {consumers * objects} objects, served after {time.perf_counter() - begin:.0f} s")
    await lists(place, consumers * objects)
    await changes(place, sorted(clusters))


async def until_there(place: Place, number: int) -> None:
    until = time.monotonic() + LONGEST
    while (count := len(await listed(place))) != number:
        if time.monotonic() > until:
            raise PlaneError(f"{count} of {number} objects are seen after {LONGEST:.0f} s")
        await asyncio.sleep(1)


async def get(server: Server, path: str, connection: Connection | None = None) -> Any:
    """None where it is not there (yet)."""
    at = connection or await server.connect()
    at.body = []
    status = await at.send(server.request("GET", path))
    text = b"".join(at.body)
    if connection is None:
        at.transport.close()
    return json.loads(text) if status == 200 else None


async def listed(place: Place) -> list[Any]:
    found = await get(place.view, WIDGETS)
    return list(found["items"]) if found is not None else []


async def lists(place: Place, number: int) -> None:
    connection = await place.view.connect()
    whole, pages = [], []
    for _ in range(PAGES):
        begin = time.perf_counter()
        await connection.send(place.view.request("GET", f"{WIDGETS}?limit={PAGE}"))
        pages.append(time.perf_counter() - begin)
    for _ in range(3):
        begin = time.perf_counter()
        await connection.send(place.view.request("GET", WIDGETS))
        whole.append(time.perf_counter() - begin)
    length = connection.size
    begin, after = time.perf_counter(), ""
    while True:
        found = await get(place.view, f"{WIDGETS}?limit={PAGE}&continue={after}", connection)
        after = found["metadata"].get("continue", "")
        if not after:
            break
    walked = time.perf_counter() - begin
    table(
        f"the view's list of {number} objects",
        [
            [
                "whole",
                f"{percentile(whole, 0.5):.2f} s",
                f"{number / percentile(whole, 0.5):,.0f} a second, {size(length)}",
            ],
            [f"first page of {PAGE}", milliseconds(percentile(pages, 0.5)), f"at most {milliseconds(max(pages))}"],
            [f"all, in pages of {PAGE}", f"{walked:.2f} s", "parsed by the client"],
        ],
    )


async def changes(place: Place, clusters: list[str]) -> None:
    """All consumers write under one watch, and get an answer through the view."""
    now = (await get(place.view, f"{WIDGETS}?limit=1"))["metadata"]["resourceVersion"]
    watches = Watches(place.view, place.view.request("GET", f"{WIDGETS}?watch=1&resourceVersion={now}"))
    await watches.open(1)
    rows = [["", "a second", "p50", "p99", "CPU ms each", "the watch has all"]]
    for title, requests in (
        ("each consumer makes one", made(place, clusters)),
        ("each is answered", answered(place, clusters)),
    ):
        seen = watches.expect(watches.connections[0].lines + len(clusters))
        result = await load(place.of(""), [*requests], CLIENTS)
        begin = time.perf_counter()
        await asyncio.wait_for(seen, 60)
        late = time.perf_counter() - begin
        shares = [milliseconds(percentile(result.latencies, share)) for share in (0.5, 0.99)]
        rows.append([title, f"{result.rate:.0f}", *shares, f"{result.cost:.1f}", f"{milliseconds(late)} later"])
    watches.close()
    table(f"{len(clusters)} consumers under one watch, {CLIENTS} clients", rows)


def made(place: Place, clusters: list[str]) -> Iterator[bytes]:
    for cluster in clusters:
        yield place.of(f"/clusters/{cluster}").request("POST", INSIDE, widget(name="asked", size=1).encode())


def answered(place: Place, clusters: list[str]) -> Iterator[bytes]:
    patch, kind = b'{"spec":{"note":"done"}}', "application/merge-patch+json"
    for cluster in clusters:
        at = place.of(place.view.path.removesuffix("*") + cluster)
        yield at.request("PATCH", f"{INSIDE}/asked", patch, kind)


if __name__ == "__main__":
    main()

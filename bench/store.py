"""What the embedded store can do on this machine: `python bench/store.py [--objects N] [--directory DIR]`.

Prints point reads, scans, pages of the log, and writes: one by one and in groups, with and without syncing to disk.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from apiserver.model.keys import Key
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store

VALUE = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{' + b"x" * 424 + b"}"


def key(number: int) -> Key:
    return Key("configmaps", f"{number // 100:016}", "default", f"object-{number % 100:03}")


def report(what: str, count: int, work: Callable[[], object]) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    took, used = time.perf_counter() - began, time.process_time() - cpu
    print(f"{what:58} {count / took:12,.0f}/s {1e6 * used / count:9.2f} µs CPU each")


def one_by_one(store: Store, count: int) -> None:
    """Each waits for the one before: the latency of a write."""
    for number in range(count):
        store.write(Put(key(number), VALUE)).result()


def waiting_together(store: Store, count: int) -> None:
    """Single-object writes, many waiting at once: group commit."""
    answers = [store.write(Put(key(number), VALUE)) for number in range(count)]
    for answer in answers:
        answer.result()


def groups(store: Store, count: int, size: int, fill: bool = False) -> None:
    answers = [
        (store.fill if fill else store.write)(*(Put(key(number), VALUE) for number in range(first, first + size)))
        for first in range(0, count, size)
    ]
    for answer in answers:
        answer.result()


def writes(directory: Path, objects: int, sync: bool) -> None:
    store = open_store(directory / f"write-{sync}", sync=sync)
    how = "synced" if sync else "unsynced"
    few = objects // 50
    report(f"single writes, each waited for, {how}", few, lambda: one_by_one(store, few))
    report(f"single writes, waiting together, {how}", few * 5, lambda: waiting_together(store, few * 5))
    report(f"objects written 1,000 a call, {how}", objects, lambda: groups(store, objects, 1000))
    report(f"the same objects again, {how}", objects, lambda: groups(store, objects, 1000))
    store.close()


def reads(directory: Path, objects: int) -> None:
    store = open_store(directory / "read", sync=False)
    report("first load, without log, 1,000 a call", objects, lambda: groups(store, objects, 1000, fill=True))
    size = (directory / "read" / "data.mdb").stat().st_size
    print(f"{'bytes on disk for each':58} {size / objects:12,.0f}")
    keys = [key(random.randrange(objects)) for _ in range(100_000)]
    report("point reads, each its own transaction", len(keys), lambda: [store.get(k) for k in keys])
    report("revision()", 100_000, lambda: [store.revision() for _ in range(100_000)])
    report("objects scanned, all workspaces", objects, lambda: store.scan("configmaps"))
    report(
        "objects scanned, 100 a workspace",
        objects // 10,
        lambda: [store.scan("configmaps", f"{n:016}") for n in range(objects // 1000)],
    )
    report("objects counted", objects, lambda: store.count("configmaps"))
    report("first page of 500 of all", 1, lambda: store.scan("configmaps", limit=500))
    start = store.revision()
    groups(store, objects // 10, 1000)
    report("old list: a page of 500 behind 10 % of changes", 1, lambda: store.scan("configmaps", limit=500, at=start))
    report("changes read", objects // 10, lambda: store.changes(start, objects))
    report("changes read, pages of 100", objects // 10, lambda: tail(store, start))
    store.close()


def tail(store: Store, after: int) -> None:
    while found := store.changes(after, 100):
        after = found[-1].revision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument(
        "--directory", type=Path, default=None, help="where to put the stores (a real disk, for syncing)"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.directory or Path.cwd()) as directory:
        reads(Path(directory), given.objects)
        writes(Path(directory), given.objects, sync=False)
        writes(Path(directory), given.objects, sync=True)


if __name__ == "__main__":
    main()

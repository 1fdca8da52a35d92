"""A process that runs the controllers is killed with SIGKILL, again and again, while another one writes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.countedstore import CountedStore
from support.following import Following

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.controllers.feed import Feed
from reconciler.controllers.housekeeping import controllers, housekeeping

CHILD = """
import sys
from pathlib import Path
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import target_builtins
from apiserver.stores import open_at
from reconciler.controllers.feed import Feed
from reconciler.controllers.housekeeping import housekeeping

Feed.SAVE_SECONDS = 0.01
store = open_at(Path(sys.argv[1]), sync=False)
feed = Feed(store)
manager = housekeeping(feed, Catalog(store, target_builtins()).kinds)
manager.start()
feed.start()
print("runs", flush=True)
sys.stdin.read()
"""
ROUNDS, EACH = 4, 40


@contextmanager
def child(directory: Path) -> Iterator[None]:
    """It runs until the end of the block, and ends without having been told."""
    command = [sys.executable, "-c", CHILD, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"runs\n"
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def family(store: Store, name: str) -> tuple[Key, Key]:
    """An owner and what belongs to it."""
    objects = Objects(store)
    owner, dependent = (Key("configmaps", "c", "default", f"{name}-{what}") for what in ("owner", "dependent"))
    made = objects.create(owner, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name, "uid": made["metadata"]["uid"]}
    objects.create(dependent, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"ownerReferences": [reference]}})
    return owner, dependent


def test_what_a_killed_process_did_not_finish_the_next_one_does(tmp_path: Path, eventually: Any) -> None:
    store = open_at(tmp_path / "store", sync=False)
    chance, orphans, kept = random.Random(7), [], []
    for number in range(ROUNDS):
        with child(tmp_path / "store"):
            until = time.monotonic() + chance.uniform(0.0, 0.3)
            for each in range(EACH):
                owner, dependent = family(store, f"{number}-{each}")
                if chance.random() < 0.7:
                    Objects(store).delete(owner)
                    orphans.append(dependent)
                else:
                    kept.append(dependent)
                if time.monotonic() > until:
                    break
    watched: Any = CountedStore(store)
    checkpoints = len(store.scan_rows(Table.CHECKPOINTS))
    loops = len(controllers(store, Catalog(store, target_builtins()).kinds))
    last = Following(watched, lambda feed: housekeeping(feed, Catalog(store, target_builtins()).kinds))
    last.start()
    eventually(lambda: last.idle)
    eventually(lambda: not any(store.get_many(orphans)))
    last.stop()
    assert all(store.get_many(kept))
    # One whose child was killed in the midst of what it was shown at its start has none yet, beside those that have.
    assert checkpoints < loops or watched.rows == []
    assert orphans
    again: Any = CountedStore(store)
    Following(again, lambda feed: housekeeping(feed, Catalog(store, target_builtins()).kinds)).settle()
    assert (again.rows, Feed.SAVE_SECONDS) == ([], 2.0)
    store.close()

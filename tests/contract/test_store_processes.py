"""Stores shared by processes: what one wrote another sees; what was acknowledged survives the writer's death."""

from __future__ import annotations

import inspect
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Declared, Index
from apiserver.storage.protocol import Put, Store

pytestmark = pytest.mark.parametrize("implementation", ["lmdb"], indirect=True)
"""The implementations that keep what they hold when their process ends, and share it with others."""

WRITE = """
import sys
from pathlib import Path
from {module} import {function} as opener
from apiserver.model.keys import Key
from apiserver.storage.protocol import Put
store = opener(Path(sys.argv[1]), sync=False)
print("open", flush=True)
for line in sys.stdin:
    print(*store.write(Put(Key("new.example.io", "c", "", line.strip()), b"from the other")).result(), flush=True)
store.close()
"""

# Acknowledges blocks of four until it is killed.
ENDLESS = """
import itertools, sys
from pathlib import Path
from {module} import {function} as opener
from apiserver.model.keys import Key
from apiserver.storage.protocol import Put
store = opener(Path(sys.argv[1]))
def told(block, answer):
    print(block, *answer.result(), flush=True)
waiting = []
for block in itertools.count():
    ops = [Put(Key("blocks", "c", str(part), f"{{block:08}}"), b"v" * 500) for part in range(4)]
    waiting.append((block, store.write(*ops)))
    if len(waiting) > 20:
        told(*waiting.pop(0))
"""


# Writes objects with their row and their entry in an index, until it is killed: in the middle of something.
KEEPING = """
import itertools, sys
from pathlib import Path
from {module} import {function} as opener
from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Declared, Index
from apiserver.storage.protocol import DeleteRow, Delete, Put, PutRow, checkpoint
NUMBERS = Index("numbers", 1, lambda key, value: [value[:8].decode()])
store = opener(Path(sys.argv[1]), sync=False, declared=Declared((NUMBERS,)))
first = int(store.get_row(Table.FLEET, "block") or b"0")
for block in itertools.count(first + 1):
    ops = [Put(Key("parts", "c", "", str(part)), b"%08d" % block + b"v" * 3000 * part) for part in range(8)]
    gone = [Delete(Key("blocks", "c", "", str(block - 3))), DeleteRow(Table.KEPT_SECRETS, str(block - 3))]
    made = [Put(Key("blocks", "c", "", str(block)), b"%08d" % block), PutRow(Table.KEPT_SECRETS, str(block), b"")]
    done = store.write(*ops, *made, *gone, PutRow(Table.FLEET, "block", b"%d" % block))
    if block % 7 == 0:
        store.write(checkpoint("writer", done.result()[0]))
        print(block, flush=True)
"""

# Adds to a number that others add to.
COUNTING = """
import sys
from pathlib import Path
from {module} import {function} as opener
from apiserver.model.tables import Table
from apiserver.storage.protocol import ABSENT, Conflict, PutRow
store = opener(Path(sys.argv[1]), sync=False)
for _ in range(200):
    while True:
        found = store.get_row(Table.FLEET, "number")
        more = b"%d" % (int(found or b"0") + 1)
        if store.write(PutRow(Table.FLEET, "number", more, ABSENT if found is None else found)).exception() is None:
            break
store.close()
"""

CLEAR = """
import sys
from pathlib import Path
from {module} import {function}
store = {function}(Path(sys.argv[1]), sync=False)
store.clear()
print(store.revision(), flush=True)
"""


def child(script: str, implementation: Callable[..., Store], directory: Path) -> subprocess.Popen[str]:
    module = inspect.getmodule(implementation)
    assert module is not None
    code = script.format(module=module.__name__, function=implementation.__name__)
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", code, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )


def test_another_process_sees_a_write_and_is_rung(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    store = opened()
    rung = threading.Event()
    store.subscribe(rung.set)
    with child(WRITE, implementation, tmp_path / "store") as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == "open\n"
        for name in ("a", "b"):
            start = store.revision()
            other.stdin.write(name + "\n")
            other.stdin.flush()
            while not store.changes(start):  # a late ring for a write before may come first
                assert rung.wait(60), "not rung"
                rung.clear()
            [change] = store.changes(start)
            assert change.key == Key("new.example.io", "c", "", name)
            assert other.stdout.readline() == f"{change.revision}\n"
            [mine] = store.write(Put(Key("mine", "c", "", name), b"")).result()
            assert mine == change.revision + 1
        other.stdin.close()
        assert other.wait(60) == 0


def test_a_very_long_directory_has_a_doorbell_too(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    name = "d" * 200
    store = opened(name)
    rung = threading.Event()
    store.subscribe(rung.set)
    with child(WRITE, implementation, tmp_path / name) as other:
        other.communicate("a\n", timeout=60)
        assert rung.wait(60)


def test_what_was_acknowledged_survives_kill(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    with child(ENDLESS, implementation, tmp_path / "store") as other:
        assert other.stdout
        acknowledged = [other.stdout.readline() for _ in range(200)]
        other.kill()
        acknowledged += other.stdout.readlines()
    told = {int(b): [int(r) for r in rest] for b, *rest in (line.split() for line in acknowledged if line[-1:] == "\n")}
    store = opened()
    found: dict[int, list[int]] = {}
    for record in store.scan("blocks").records:
        found.setdefault(int(record.key.name), []).append(record.revision)
    assert len(told) >= 200
    assert {block: found.get(block) for block in told} == told
    assert all(len(revisions) == 4 for revisions in found.values()), "a torn block"
    assert store.revision() == max(max(revisions) for revisions in found.values())
    changes = store.changes(store.oldest(), 1_000_000)
    assert len(changes) == 4 * len(found)
    [after] = store.write(Put(Key("blocks", "c", "0", "after"), b"")).result()
    assert after == changes[-1].revision + 1


def test_a_kill_leaves_whole_transactions(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    """Objects, rows, entries of indexes, counts and the log say the same, wherever the process was killed."""
    random.seed(1)
    numbers = Index("numbers", 1, lambda key, value: [value[:8].decode()])
    last = 0
    for _ in range(8):
        with child(KEEPING, implementation, tmp_path / "store") as other:
            assert other.stdout
            for _ in range(random.randrange(1, 8)):
                last = int(other.stdout.readline())
            other.kill()
        store = opened(declared=Declared((numbers,)))
        block = int(store.get_row(Table.FLEET, "block") or b"0")
        assert block >= last, "what was acknowledged is there"
        parts = store.scan("parts").records
        assert [int(record.value[:8]) for record in parts] == [block] * 8
        there = {record.key.name for record in store.scan("blocks").records}
        assert there == {str(n) for n in range(max(1, block - 2), block + 1)}
        assert {row.key for row in store.scan_rows(Table.KEPT_SECRETS)} == there
        entries = {(int(entry.term), entry.key) for entry in store.indexed(numbers)}
        expected = {(int(r.value[:8]), r.key) for name in ("parts", "blocks") for r in store.scan(name).records}
        assert entries == expected
        assert (store.count("parts"), store.count("blocks", "c")) == (8, len(there))
        told = {change.key: change.value for change in store.changes(store.oldest(), 1_000_000)}
        assert {key: value for key, value in told.items() if value is not None} == {
            record.key: record.value for name in ("parts", "blocks") for record in store.scan(name).records
        }
        store.close()


def test_two_processes_swap_one_row(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    store = opened()
    with (
        child(COUNTING, implementation, tmp_path / "store") as one,
        child(COUNTING, implementation, tmp_path / "store") as other,
    ):
        assert (one.wait(60), other.wait(60)) == (0, 0)
    assert store.get_row(Table.FLEET, "number") == b"400"


def test_writers_in_two_processes_do_not_collide(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    store = opened()
    start = store.revision()
    with child(WRITE, implementation, tmp_path / "store") as other:
        assert other.stdin and other.stdout
        assert other.stdout.readline() == "open\n"
        other.stdin.write("".join(f"{n}\n" for n in range(300)))
        other.stdin.flush()
        mine = [store.write(Put(Key("mine", "c", "", f"{n}"), b"")).result()[0] for n in range(300)]
        theirs = [int(other.stdout.readline()) for _ in range(300)]
        other.stdin.close()
        other.wait(60)
    assert sorted(mine + theirs) == list(range(start + 1, start + 601))
    assert [c.revision for c in store.changes(start)] == sorted(mine + theirs)


def test_an_idle_subscriber_sleeps(store: Store, eventually: Callable[..., object]) -> None:
    """In the best half second of some: threads that other tests left here may work in one."""
    store.subscribe(lambda: None)

    def is_idle() -> bool:
        before, began = time.process_time(), time.monotonic()
        threading.Event().wait(0.5)
        return time.process_time() - before < 0.1 * (time.monotonic() - began)

    eventually(is_idle)


def test_what_another_process_clears_is_gone_here(
    opened: Callable[..., Store], implementation: Callable[..., Store], tmp_path: Path
) -> None:
    store, rung = opened(), threading.Event()
    key = Key("configmaps", "c", "", "a")
    [before] = store.write(Put(key, b"1")).result()
    store.subscribe(rung.set)
    with child(CLEAR, implementation, tmp_path / "store") as other:
        assert int(other.communicate(timeout=60)[0]) == store.revision() > before
    assert rung.wait(60)
    assert store.get(key) is None
    assert store.write(Put(key, b"2")).result() == [store.revision()]

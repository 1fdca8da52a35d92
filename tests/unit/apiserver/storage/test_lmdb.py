"""What is particular to the embedded store: its files, the bound of its log, its doorbell."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
from support.formats import set_format
from support.nowhere import no_room

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.lmdb import LmdbStore, open_store
from apiserver.storage.lmdb_environment import FORMAT, StoreSettings
from apiserver.storage.lmdb_looking import check_format
from apiserver.storage.lmdb_soundness import NewerStore
from apiserver.storage.protocol import NEVER, Compacted, Delete, DeleteRow, NoSpace, Put, Store, checkpoint
from apiserver.stores import RUINED, looking_at, open_at


def cm(name: str) -> Key:
    return Key("configmaps", "root", "default", name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "deep" / "store", sync=False)
    yield store
    store.close()


def test_nobody_else_can_read_the_files(store: Store, tmp_path: Path) -> None:
    store.subscribe(lambda: None)
    store.write(Put(cm("a"), b"secret")).result()
    directory = tmp_path / "deep" / "store"
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [directory, *directory.iterdir()]}
    assert modes == {"store": 0o700, "data.mdb": 0o600, "lock.mdb": 0o600, "bells": 0o700}
    assert [stat.S_IMODE(p.stat().st_mode) for p in (directory / "bells").iterdir()] == [0o600]


def test_a_directory_is_opened_once_in_a_process(store: Store, tmp_path: Path) -> None:
    with pytest.raises(lmdb.Error, match="already open"):
        open_store(tmp_path / "deep" / "store")
    store.write(Put(cm("a"), b"still works")).result()


def test_a_store_of_another_format_is_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = open_store(tmp_path, sync=False)
    [before] = store.write(Put(cm("a"), b"of old")).result()
    store.close()
    set_format(tmp_path, 0)
    store = open_store(tmp_path, sync=False)
    try:
        assert "format b'0'" in caplog.text
        assert (store.get(cm("a")), store.resources(), store.count("configmaps")) == (None, [], 0)
        assert store.revision() == store.oldest() > before
        store.write(Put(cm("a"), b"new")).result()
    finally:
        store.close()
    assert caplog.text.count("\n") == 1


def test_a_store_of_a_newer_format_is_refused_by_name_and_stays_as_it_is(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    store.write(Put(cm("a"), b"of new")).result()
    store.close()
    set_format(tmp_path, int(FORMAT) + 1)
    before = (tmp_path / "data.mdb").read_bytes()
    for opening in (open_store, check_format):
        with pytest.raises(NewerStore, match=f"format {int(FORMAT) + 1}, which a newer .* up to {int(FORMAT)}") as told:
            opening(tmp_path)
        assert str(tmp_path) in str(told.value)
    assert (tmp_path / "data.mdb").read_bytes() == before
    assert not (tmp_path / "data.mdb.damaged").exists()
    set_format(tmp_path, int(FORMAT))
    store = open_store(tmp_path, sync=False)
    assert store.get(cm("a")) is not None
    store.close()


def test_what_is_no_store_or_an_older_one_is_not_refused(tmp_path: Path) -> None:
    check_format(tmp_path / "missing")
    (tmp_path / "data.mdb").write_bytes(b"no store")
    check_format(tmp_path)
    (tmp_path / "data.mdb").unlink()
    open_store(tmp_path).close()
    check_format(tmp_path)
    set_format(tmp_path, int(FORMAT) - 1)
    check_format(tmp_path)


def test_to_ask_the_format_of_one_that_was_cut_off_kills_nobody(tmp_path: Path) -> None:
    """Whoever reads behind the end of a mapped file gets SIGBUS: in a process of its own, so that this one tells it."""
    store = open_store(tmp_path, sync=False)
    written(store, 50)
    store.close()
    with (tmp_path / "data.mdb").open("r+b") as data:
        data.truncate((tmp_path / "data.mdb").stat().st_size // 3)
    asking = "import pathlib, sys; from apiserver.storage import lmdb_looking as found"
    asking += "; found.check_format(pathlib.Path(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", asking, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def written(store: Store, blocks: int, size: int = 100, value: bytes = b"v") -> int:
    """Writes so many blocks of objects; the last revision."""
    for _ in range(blocks):
        store.write(*(Put(cm(f"{n}"), value) for n in range(size))).result()
    return store.revision()


def test_what_nobody_needs_is_cut_from_the_log(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False, settings=StoreSettings(log_seconds=0))
    written(store, 60)
    kept = store.changes(store.oldest(), 100_000)
    assert 100 <= len(kept) <= 200
    assert kept[-1].revision - kept[0].revision == len(kept) - 1
    assert isinstance(store, LmdbStore)
    with store._env.read() as txn:
        assert store._env.state(txn).entries == txn.stat(store._env.log)["entries"] == len(kept)
    store.close()


def test_the_log_keeps_what_was_written_of_late(tmp_path: Path, eventually: Callable[..., object]) -> None:
    """An entry is gone some time after it was written, and not before, whichever process writes then."""
    store = open_store(tmp_path, sync=False, settings=StoreSettings(log_seconds=1.0))
    began, start = time.monotonic(), store.revision()
    half = written(store, 1)
    store.close()
    store = open_store(tmp_path, sync=False, settings=StoreSettings(log_seconds=1.0))

    def cut() -> bool:
        store.write(Put(cm("later"), b"")).result()
        assert store.oldest() == start or time.monotonic() - began > 1.0
        return store.oldest() >= half

    eventually(cut)
    assert time.monotonic() - began > 1.0
    assert store.changes(store.oldest())
    store.close()


def test_a_slow_reader_with_a_checkpoint_goes_on_after_a_load(tmp_path: Path) -> None:
    """As of a load that writes more than anybody reads meanwhile; who wrote down nothing begins anew."""
    store = open_store(tmp_path, sync=False, settings=StoreSettings(log_seconds=0))
    reached = written(store, 1)
    store.write(checkpoint("slow", reached), checkpoint("quick", reached + 50)).result()
    head = written(store, 100)
    found: list[int] = []
    while reached < head:
        page = store.changes(reached, 700)
        found += [change.revision for change in page]
        reached = page[-1].revision
        store.write(checkpoint("slow", reached), checkpoint("quick", head)).result()
        written(store, 1, size=1)
    assert found[:10_000] == list(range(head - 9_999, head + 1))
    store.write(DeleteRow(Table.CHECKPOINTS, "slow"), DeleteRow(Table.CHECKPOINTS, "quick")).result()
    last = written(store, 20)
    assert store.oldest() > head
    with pytest.raises(Compacted):
        store.changes(head)
    assert store.oldest() >= last - 200
    store.close()


def test_a_checkpoint_that_nobody_moves_does_not_fill_the_disk(tmp_path: Path) -> None:
    settings = StoreSettings(log_seconds=0, log_bytes=200_000)
    store = open_store(tmp_path, sync=False, settings=settings)
    reached = written(store, 1)
    store.write(checkpoint("gone for good", reached)).result()
    written(store, 5, value=b"v" * 300)
    assert store.changes(reached, 1)
    written(store, 60, value=b"v" * 300)
    with pytest.raises(Compacted):
        store.changes(reached)
    assert isinstance(store, LmdbStore)
    with store._env.read() as txn:
        assert store._env.state(txn).size <= 300_000
    store.close()


def test_the_log_is_cut_by_size(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False, settings=StoreSettings(log_bytes=1_000_000))
    for _ in range(40):
        store.write(*(Put(cm(f"{n}"), b"v" * 1000) for n in range(100))).result()
    kept = store.changes(store.oldest(), 100_000)
    assert 0 < len(kept) < 2000
    store.close()


def test_what_the_log_passed_over_is_swept(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    assert isinstance(store, LmdbStore)
    store.write(*(Put(cm(f"{n}"), b"1") for n in range(3000))).result()
    store.write(*(Put(cm(f"{n}"), b"2") for n in range(3000))).result()
    store.fill(Put(cm("a"), b"loaded")).result()
    for _ in range(5):
        store.write(Put(cm("a"), b"3")).result()
    with store._env.read() as txn:
        assert store._env.state(txn).entries == txn.stat(store._env.log)["entries"] == 5
        assert txn.stat(store._env.next)["entries"] == 5
    store.close()


def test_a_compacted_log_leaves_no_rows_behind(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    assert isinstance(store, LmdbStore)
    for _ in range(10):
        store.write(*(Put(cm(f"{n}"), b"1") for n in range(10)), *(Delete(cm(f"{n}")) for n in range(5))).result()
    store.compact(0)
    with store._env.read() as txn:
        state = store._env.state(txn)
        assert (state.entries, state.size) == (0, 0)
        assert txn.stat(store._env.log)["entries"] == txn.stat(store._env.next)["entries"] == 0
    store.close()


def test_another_process_may_open_it_with_a_larger_map(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False, settings=StoreSettings(map_size=1 << 20))
    script = (
        "import sys; from pathlib import Path; from apiserver.storage.lmdb import open_store\n"
        "from apiserver.model.keys import Key; from apiserver.storage.protocol import Put\n"
        "store = open_store(Path(sys.argv[1]), sync=False)\n"
        "for n in range(5): store.write(Put(Key('configmaps', 'root', 'default', str(n)), b'v' * 1_000_000)).result()\n"
        "store.close()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=Path(__file__).parents[4])
    assert store.count("configmaps") == 5
    store.write(Put(cm("mine"), b"v" * 1_000_000)).result()
    assert store.count("configmaps") == 6
    store.close()


def test_a_full_map_fails_the_write_and_nothing_else(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False, settings=StoreSettings(map_size=1 << 20))
    store.write(Put(cm("a"), b"small")).result()
    with pytest.raises(NoSpace, match="full"):
        store.write(Put(cm("b"), b"v" * 2_000_000)).result()
    revision = store.revision()
    assert store.write(Put(cm("c"), b"small")).result() == [revision + 1]
    assert [r.key.name for r in store.scan("configmaps").records] == ["a", "c"]
    store.close()


def test_bells_of_the_dead_are_taken_down(tmp_path: Path, eventually: Callable[..., object]) -> None:
    store = open_store(tmp_path, sync=False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(tmp_path / "bells" / "1-1.sock"))
    store.write(Put(cm("a"), b"")).result()
    eventually(lambda: not list((tmp_path / "bells").iterdir()))
    store.close()


def test_without_a_doorbell_changes_are_looked_for(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    rung = threading.Event()
    store.subscribe(rung.set)
    for bell in (tmp_path / "bells").iterdir():
        bell.unlink()
    script = (
        "import sys; from pathlib import Path; from apiserver.storage.lmdb import open_store\n"
        "from apiserver.model.keys import Key; from apiserver.storage.protocol import Put\n"
        "store = open_store(Path(sys.argv[1]), sync=False)\n"
        "store.write(Put(Key('configmaps', 'root', 'default', 'a'), b'')).result()\n"
        "store.close()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=Path(__file__).parents[4])
    assert rung.wait(60)
    store.close()


def test_a_deleted_directory_does_not_stop_the_writer(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", sync=False)
    (tmp_path / "store" / "bells").rmdir()
    for name in ("a", "b"):
        store.write(Put(cm(name), b"")).result()
    assert store.count("configmaps") == 2
    store.close()


def test_a_full_store_refuses_writes_by_name_and_is_read_on(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False, settings=StoreSettings(map_size=1 << 20))
    try:
        written = 0
        with pytest.raises(NoSpace, match="full"):
            for written in range(1000):
                store.write(Put(cm(f"{written:03}"), b"x" * 10_000)).result()
        before = store.revision()
        with pytest.raises(NoSpace):
            store.write(Put(cm("a"), b"", NEVER), Put(cm("b"), b"x" * 100_000)).result()
        assert (store.revision(), store.get(cm("a")), store.count("configmaps")) == (before, None, written)
        assert len(store.scan("configmaps").records) == written
    finally:
        store.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.write(Put(cm("b"), b"")).result(),
        lambda store: store.fill(Put(cm("b"), b"")).result(),
        lambda store: store.compact(0),
        lambda store: store.clear(),
    ],
    ids=["write", "fill", "compact", "clear"],
)
def test_whatever_a_full_disk_does_not_take_is_refused_by_name(
    tmp_path: Path, change: Callable[[Store], object]
) -> None:
    store = open_store(tmp_path)
    try:
        for _ in range(3):
            store.write(Put(cm("a"), b"small")).result()
        before = store.revision(), store.oldest()
        with no_room(tmp_path), pytest.raises(NoSpace, match="is full"):
            change(store)
        assert (store.revision(), store.oldest()) == before
        assert store.count("configmaps") == 1
        change(store)  # there is room again
    finally:
        store.close()


def test_a_commit_that_fails_at_its_last_page_ruins_the_store_for_its_process_alone(tmp_path: Path) -> None:
    """As on file systems that write anew what they change: there is room for the pages, and none for the last."""
    told: list[Path] = []
    store = open_store(tmp_path, ruined=told.append)
    store.write(Put(cm("a"), b"small")).result()
    before = store.revision()
    with no_room(tmp_path, meta=True), pytest.raises(NoSpace, match="is full"):
        store.write(Put(cm("b"), b"small")).result()
    assert told == []
    with pytest.raises(lmdb.PanicError):
        store.revision()
    with pytest.raises(lmdb.PanicError):
        store.write(Put(cm("b"), b"small")).result()
    assert told == [tmp_path, tmp_path]
    store.close()
    again = open_store(tmp_path)
    assert (again.revision(), again.get(cm("b"))) == (before, None)
    assert again.write(Put(cm("b"), b"small")).result() == [before + 1]
    again.close()


@pytest.mark.parametrize("use", ["store.revision()", "store.write(Put(KEY, b''))"])
def test_a_process_that_is_started_again_ends_where_its_store_is_ruined(tmp_path: Path, use: str) -> None:
    script = f"""
import sys, time; from pathlib import Path
from apiserver.model.keys import Key; from apiserver.storage.protocol import NoSpace, Put
from apiserver.stores import open_serving
from support.nowhere import no_room
KEY, directory = Key('configmaps', 'root', 'default', 'a'), Path(sys.argv[1])
store = open_serving(directory, sync=True)
store.write(Put(KEY, b'{{}}')).result()
try:
    with no_room(directory, meta=True):
        store.write(Put(KEY, b'[]')).result()
except NoSpace:
    {use}
    time.sleep(60)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True, text=True, timeout=60,
        cwd=Path(__file__).parents[4], env={**os.environ, "PYTHONPATH": "tests:."},
    )  # fmt: skip
    assert done.returncode == RUINED, done.stderr
    assert "can use it no more: it ends" in done.stderr
    store = open_at(tmp_path, sync=True)
    assert store.count("configmaps") == 1
    store.close()


def handles_of_a_child() -> str:
    """Where those lead that a program has which is not told to close anything, as a git of the server's is."""
    return subprocess.run(
        ["sh", "-c", "ls -l /proc/$$/fd"], close_fds=False, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_what_a_process_starts_has_no_handle_of_the_store(tmp_path: Path) -> None:
    store = open_at(tmp_path / "store", sync=False)
    found = handles_of_a_child()
    store.close()
    with looking_at(tmp_path / "store"):
        found += handles_of_a_child()
    assert "pipe:" in found
    assert str(tmp_path) not in found

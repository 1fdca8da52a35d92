"""What is particular to the embedded store: its files, the bound of its log, its doorbell."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest

from apiserver.model.keys import Key
from apiserver.storage.lmdb import LmdbStore, open_store
from apiserver.storage.lmdb_environment import StoreSettings
from apiserver.storage.protocol import Delete, Put, Store


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
    with lmdb.open(str(tmp_path), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(b"format", b"0", db=env.open_db(b"state", txn=txn))
    store = open_store(tmp_path, sync=False)
    try:
        assert "format b'0'" in caplog.text
        assert (store.get(cm("a")), store.resources(), store.count("configmaps")) == (None, [], 0)
        assert store.revision() == store.oldest() > before
        store.write(Put(cm("a"), b"new")).result()
    finally:
        store.close()
    assert caplog.text.count("\n") == 1


def test_the_log_is_cut_by_count(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False, settings=StoreSettings(log_entries=100))
    start = store.revision()
    for number in range(60):
        store.write(*(Put(cm(f"{n}"), b"%d" % number) for n in range(100))).result()
    assert store.revision() == start + 6000
    kept = store.changes(store.oldest(), 100_000)
    assert 100 <= len(kept) <= 1200
    assert kept[-1].revision - kept[0].revision == len(kept) - 1
    assert {c.value for c in kept} > {b"59"}
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
    with pytest.raises(lmdb.MapFullError):
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
    assert rung.wait(5)
    store.close()


def test_a_deleted_directory_does_not_stop_the_writer(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", sync=False)
    (tmp_path / "store" / "bells").rmdir()
    for name in ("a", "b"):
        store.write(Put(cm(name), b"")).result()
    assert store.count("configmaps") == 2
    store.close()

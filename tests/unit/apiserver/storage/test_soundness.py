"""Stores whose files are damaged, or were written without syncing before the machine started last."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest

from apiserver.model.keys import Key
from apiserver.storage import lmdb_soundness as soundness
from apiserver.storage.lmdb import open_store
from apiserver.storage.lmdb_environment import StoreSettings
from apiserver.storage.lmdb_soundness import Damaged
from apiserver.storage.protocol import Put

ROOT = Path(__file__).parents[4]
AT = Key("configmaps", "root", "default", "a")


def fill(directory: Path, *, sync: bool = True) -> int:
    """A store with a few thousand objects; its last revision."""
    store = open_store(directory, sync=sync)
    for block in range(20):
        keys = [AT._replace(name=f"{block}-{number}") for number in range(100)]
        store.write(*(Put(key, b"v" * 500) for key in keys)).result()
    store.write(Put(AT, b"kept")).result()
    revision = store.revision()
    store.close()
    return revision


def no_store(directory: Path) -> None:
    (directory / "data.mdb").write_bytes(b"not a store at all" * 10_000)


def no_meta_pages(directory: Path) -> None:
    with (directory / "data.mdb").open("r+b") as file:
        file.write(bytes(8192))


def cut_off(directory: Path) -> None:
    file = directory / "data.mdb"
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size // 3)


def scribbled(directory: Path) -> None:
    """Where the tables stand: LMDB finds that its pages are none."""
    file = directory / "data.mdb"
    with file.open("r+b") as data:
        data.seek(8192)
        data.write(b"\xff" * (file.stat().st_size - 8192))


def no_state(directory: Path) -> None:
    with lmdb.open(str(directory), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.put(b"state", b"?", db=env.open_db(b"state", txn=txn))


@pytest.mark.parametrize("damage", [no_store, no_meta_pages, cut_off, scribbled, no_state], ids=lambda d: d.__name__)
def test_a_damaged_store_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None]
) -> None:
    before = fill(tmp_path)
    damage(tmp_path)
    damaged = (tmp_path / "data.mdb").read_bytes()
    store = open_store(tmp_path, start=before)
    try:
        assert store.get(AT) is None
        assert store.resources() == []
        assert store.revision() >= before
        store.write(Put(AT, b"new")).result()
    finally:
        store.close()
    [line] = [record.getMessage() for record in caplog.records]
    assert str(tmp_path) in line
    assert "data.mdb.damaged" in line
    assert "lost" in line
    if damage is not no_state:
        assert (tmp_path / "data.mdb.damaged").read_bytes() == damaged
    store = open_store(tmp_path)
    assert store.get(AT) is not None
    store.close()
    assert len(caplog.records) == 1


def test_a_store_that_lost_its_format_begins_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path)
    with lmdb.open(str(tmp_path), max_dbs=8) as env, env.begin(write=True) as txn:
        txn.delete(b"format", db=env.open_db(b"state", txn=txn))
    store = open_store(tmp_path)
    assert (store.resources(), store.count("configmaps")) == ([], 0)
    store.close()
    assert "built anew" in caplog.text


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A store whose file lacks its last page, to which nothing refers: as LMDB leaves it where pages were given up in
    the transaction that took them."""
    fill(tmp_path)
    store = open_store(tmp_path)
    store.clear()
    store.write(Put(AT, b"kept")).result()
    store.close()
    file = tmp_path / "data.mdb"
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size - 4096)
    return tmp_path


@pytest.mark.parametrize("probe", [sys.executable, "/bin/false"], ids=["read", "not to be read"])
def test_pages_that_nothing_refers_to_may_be_missing(
    short: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, probe: str
) -> None:
    """Also where nobody could find that out: what is lost otherwise is everything that only the store knows."""
    monkeypatch.setattr(sys, "executable", probe)
    store = open_store(short)
    assert store.get(AT) is not None
    store.close()
    assert caplog.text == ""


def test_what_was_not_synced_is_not_believed_after_the_machine_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, sync=False)
    open_store(tmp_path, sync=False).close()
    assert caplog.text == ""
    monkeypatch.setattr(soundness, "boot", lambda: b"the next one")
    store = open_store(tmp_path, sync=False)
    assert store.get(AT) is None
    assert "without syncing" in caplog.text
    store.close()


def test_what_was_synced_is_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "always")
    fill(tmp_path / "later", sync=False)
    open_store(tmp_path / "later", sync=True).close()
    monkeypatch.setattr(soundness, "boot", lambda: b"the next one")
    for name in ("always", "later"):
        store = open_store(tmp_path / name)
        assert store.get(AT) is not None
        store.close()
    assert caplog.text == ""


OPEN = """
import sys
from pathlib import Path
from apiserver.storage.lmdb import open_store
store = open_store(Path(sys.argv[1]), sync=False)
print(store.revision(), len(store.resources()), flush=True)
sys.stdin.read()
store.close()
"""


def test_of_many_that_start_one_sets_it_aside(tmp_path: Path) -> None:
    fill(tmp_path)
    no_store(tmp_path)
    script = [sys.executable, "-c", OPEN, str(tmp_path)]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(script, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) for _ in range(4)]
    told = []
    for process in started:
        assert process.stdout is not None
        told.append(process.stdout.readline())
    errors = [process.communicate()[1] for process in started]
    assert len(set(told)) == 1, "they have the same store"
    assert told[0].endswith(" 0\n")
    assert sum("set aside" in text for text in errors) == 1


def test_what_others_use_is_not_set_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soundness, "_PATIENCE", 0.3)
    fill(tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", OPEN, str(tmp_path)], stdin=pipe, stdout=pipe, text=True, cwd=ROOT
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        no_store(tmp_path)
        with pytest.raises(Damaged, match="in use"):
            open_store(tmp_path, settings=StoreSettings(map_size=1 << 30))
        assert not (tmp_path / "data.mdb.damaged").exists()
        other.kill()

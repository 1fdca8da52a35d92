"""What many objects say stands once in an LMDB store, as long as one of them says it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lmdb
import orjson
import pytest

from apiserver.model.keys import Key
from apiserver.storage.declared import Declared, Index
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Put, Store
from apiserver.storage.templates import Kind, cut, fill

LONG = "what all of them say " * 50


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path, sync=False)
    yield store
    store.close()


def thing(cluster: str) -> Key:
    return Key("things", cluster, "", "thing")


def like(key: Key, said: str = LONG) -> Put:
    value = orjson.dumps({"cluster": key.cluster, "is": f"{key.cluster}'s", "said": said})
    filled = cut(key, value, [(Kind.TEXT, f"{key.cluster}'s")])
    assert filled is not None
    return Put(key, value, like=filled)


def stored(directory: Path) -> dict[str, list[bytes]]:
    """What LMDB holds of the objects and of the templates."""
    with lmdb.open(str(directory), max_dbs=16, readonly=True) as env, env.begin() as txn:
        tables = {name: env.open_db(name.encode(), txn=txn, create=False) for name in ("objects", "templates")}
        return {name: list(txn.cursor(db=table).iternext(values=True, keys=False)) for name, table in tables.items()}


def test_objects_that_are_alike_take_what_is_their_own(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    puts = [like(thing(f"c{n}")) for n in range(10)]
    for put in puts:
        store.write(put).result()
    assert [record.value for record in store.scan("things").records] == [put.value for put in puts]
    store.close()
    sizes = [len(raw) for raw in stored(tmp_path)["objects"]]
    assert sizes[0] > 1000, "nobody said the same yet"
    assert max(sizes[1:]) < 30


def test_a_template_goes_with_the_last_that_refers_to_it(tmp_path: Path) -> None:
    store = open_store(tmp_path, sync=False)
    store.write(*(like(thing(f"c{n}")) for n in range(4))).result()
    store.write(Put(thing("c1"), b"another"), Delete(thing("c2"))).result()
    store.write(Delete(thing("c3")), like(thing("c3")), like(thing("c3"))).result()
    store.close()
    assert len(stored(tmp_path)["templates"]) == 2, "its number, and itself"
    store = open_store(tmp_path, sync=False)
    store.write(Delete(thing("c3"))).result()
    assert [record.key.cluster for record in store.scan("things").records] == ["c0", "c1"]
    said = [change.previous for change in store.changes(store.oldest()) if change.deletes]
    assert said == [like(thing(f"c{n}")).value for n in (2, 3, 3)], "the log still tells"
    store.close()
    assert len(stored(tmp_path)["templates"]) == 2
    store = open_store(tmp_path, sync=False)
    store.compact(0)
    store.close()
    assert stored(tmp_path)["templates"] == []


def test_a_template_that_comes_again_is_not_mistaken_for_the_one_before(store: Store) -> None:
    for said in (LONG, LONG.upper(), LONG):
        store.write(*(like(thing(f"c{n}"), said) for n in range(3))).result()
        assert {orjson.loads(record.value)["said"] for record in store.scan("things").records} == {said}
        store.clear()


def test_the_log_tells_whole_values(store: Store) -> None:
    puts = [like(thing(f"c{n}")) for n in range(3)]
    begin = store.revision()
    store.write(*puts).result()
    store.write(Put(thing("c1"), b"another"), Delete(thing("c2"))).result()
    told = [(change.value, change.previous) for change in store.changes(begin)]
    assert told[:3] == [(put.value, None) for put in puts]
    assert told[3:] == [(b"another", puts[1].value), (None, puts[2].value)]
    assert [record.value for record in store.scan("things", at=begin + 3).records] == [put.value for put in puts]


def test_an_index_finds_what_a_template_says(tmp_path: Path) -> None:
    """Kept up, and built anew."""
    said = Index("said", 1, lambda _, value: [orjson.loads(value)["said"][:4]], b'"said"')
    store = open_store(tmp_path, sync=False, declared=Declared(indexes=(said,)))
    store.write(*(like(thing(f"c{n}")) for n in range(3))).result()
    assert [entry.key.cluster for entry in store.indexed(said, "what")] == ["c0", "c1", "c2"]
    store.close()
    anew = Index("said", 2, said.terms, said.hint)
    store = open_store(tmp_path, sync=False, declared=Declared(indexes=(anew,)))
    assert [entry.key.cluster for entry in store.indexed(anew, "what")] == ["c0", "c1", "c2"]
    store.write(*(Delete(thing(f"c{n}")) for n in range(3))).result()
    assert store.indexed(anew) == []
    store.close()


@pytest.mark.parametrize("text", ["c", '"said":['])
def test_what_is_said_in_a_form_alone_is_stored_as_if_it_were_written_out(tmp_path: Path, text: str) -> None:
    """Objects, log and indexes: also what is put in, and what is written twice in one transaction."""
    said = Index("said", 1, lambda _, value: [orjson.loads(value)["is"]], text.encode())
    found = []
    for whole in (True, False):
        store = open_store(tmp_path / str(whole), sync=False, declared=Declared(indexes=(said,)))
        puts, begin = [like(thing(f"c{n}"), text) for n in range(4)], store.revision()
        puts = puts if whole else [put._replace(whole=b"") for put in puts]
        store.write(*puts[:3]).result()
        store.write(puts[1], puts[3], puts[3], Delete(puts[2].key)).result()
        entries = [entry.key.cluster for entry in store.indexed(said, "c")]
        told = [(c.revision - begin, c.key, c.value, c.previous) for c in store.changes(begin)]
        found.append(([(r.key, r.value) for r in store.scan("things").records], told, entries))
        store.close()
    assert found[0] == found[1]
    assert found[0][2] == ["c0", "c1", "c3"] or text != "c"


def test_another_process_reads_the_same(store: Store, tmp_path: Path) -> None:
    puts = [like(thing(f"c{n}")) for n in range(3)]
    store.write(*puts).result()
    script = (
        "import sys; from pathlib import Path; from apiserver.storage.lmdb import open_store\n"
        "for record in open_store(Path(sys.argv[1]), sync=False).scan('things').records: print(record.value.decode())"
    )
    found = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, capture_output=True)
    assert found.stdout.splitlines() == [put.value for put in puts]


def test_what_an_older_version_stored_reads_as_it_did() -> None:
    """What a template means does not change: these are bytes that were written once."""
    template = b'cluster name uid time commit text\n{"a":"\x02.\x01","b":["\x03","\x04","\x05"],"\x06":"\x01"}'
    parameters = bytes(range(16)) + (1767225660).to_bytes(5, "big") + b"\xe0" * 20 + b'\x00\x04\\"\xc3\xa9'
    value = fill(template, Key("things", "k3xa", "", "default"), parameters)
    assert value.decode() == (
        '{"a":"default.k3xa","b":["00010203-0405-0607-0809-0a0b0c0d0e0f","2026-01-01T00:01:00Z","' + "e0" * 20 + '"],'
        '"\\"é":"k3xa"}'
    )


def test_what_an_index_looks_for_may_be_a_text_of_the_objects_own(tmp_path: Path) -> None:
    def terms(_: Key, value: bytes) -> list[str]:
        return ["says"] if b'"looked for"' in value else []

    def put(name: str, said: str) -> Put:
        key = Key("things", "c", "", name)
        value = orjson.dumps({"name": name, "said": said, "long": LONG})
        return Put(key, b"", like=cut(key, value, [(Kind.TEXT, said)]))

    index = Index("says", 1, terms, b'"looked for"')
    store = open_store(tmp_path, sync=False, declared=Declared(indexes=(index,)))
    store.write(*(put(f"n{number}", "x") for number in range(3))).result()
    store.write(
        put("n3", "looked for"), put("looked for", "x"), put("n4", "nothing is looked for"), put("n5", "x")
    ).result()
    assert [entry.key.name for entry in store.indexed(index)] == ["looked for", "n3"]
    store.write(put("n3", "x"), put("n1", "looked for")).result()
    assert [entry.key.name for entry in store.indexed(index)] == ["looked for", "n1"]
    store.close()


def test_an_index_by_form_reads_one_of_those_that_have_nothing(tmp_path: Path) -> None:
    read = []

    def terms(key: Key, value: bytes) -> list[str]:
        read.append(key.cluster)
        return ["held"] if b'"held":[' in value else []

    def put(cluster: str, **more: object) -> Put:
        value = orjson.dumps({"cluster": cluster, "said": LONG, **more})
        return Put(thing(cluster), value, like=cut(thing(cluster), value, []))

    held = Index("held", 1, terms, b'"said":', by_form=True)
    store = open_store(tmp_path, sync=False, declared=Declared(indexes=(held,)))
    store.write(*(put(f"c{n}") for n in range(3))).result()
    assert read == ["c0"]
    store.write(*(put(f"h{n}", held=["y"]) for n in range(3))).result()
    # One that has another form, or none, is read.
    store.write(put("c1", held=["y"]), Put(thing("c2"), b'{"said":"x","held":["y"]}')).result()
    assert [entry.key.cluster for entry in store.indexed(held)] == ["c1", "c2", "h0", "h1", "h2"]
    store.write(put("c1"), put("h1")).result()
    assert [entry.key.cluster for entry in store.indexed(held)] == ["c2", "h0", "h2"]
    store.close()

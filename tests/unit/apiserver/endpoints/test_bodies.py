"""Bodies that strangers send: whatever they are, they are read or refused, and cost no more than their size."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.endpoints.bodies import duplicates, read_json, read_object, read_patch, repeated
from apiserver.model.errors import StatusError

YAML = "application/yaml"


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    body = b"a: 0777\nb: 1_000\nc: 2026-01-01\nd: 1:30\ne: 'yes'\nf: yes\n3: x\ng: !!binary aGk=\nh: 1e3\n"
    assert read_object(body, YAML) == {
        "a": 511, "b": 1000, "c": "2026-01-01", "d": "1:30", "e": "yes", "f": True, "3": "x", "g": "hi", "h": 1000,
    }  # fmt: skip


def test_aliases_and_merge_keys() -> None:
    found = read_object(b"base: &b {x: 1, z: 2}\nmade: {<<: *b, z: 3}\nagain: *b\n", YAML)
    assert found == {"base": {"x": 1, "z": 2}, "made": {"x": 1, "z": 3}, "again": {"x": 1, "z": 2}}


def test_keys_of_yaml_that_stand_twice() -> None:
    body = b"a: 1\nb: 2\na: 3\nc: &c {x: 1}\nd: [*c, *c]\n7: 1\n7: 2\n"
    assert read_object(body, YAML)["a"] == 3
    lines = '\n  line 3: key "a" already set in map\n  line 7: key 7 already set in map'
    assert repeated(body, YAML) == [f"yaml: unmarshal errors:{lines}"]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 300_000,  # PyYAML's composer would end the process
        b"{a: " * 5_000,
        b"- " * 5_000 + b"x",
        b"a: &a [*a]",
        b"a: &a [x,x]\n" + b"".join(b"%c: &%c [*%c,*%c]\n" % (c, c, c - 1, c - 1) for c in range(ord("b"), ord("z"))),
        b"a: .inf",
        b"a: .nan",
        b"a: !!int z",
        b"a: !!int ''",
        b"a: !!float ''",
        b"a: !!bool z",
        b"a: !!binary '%'",
        b"? [1]\n: 2",
        b"<<: x",
        b"a: \xff",
        b"a: \x00",
        b"@",
        b"x",
        b"",
        b"- a",
    ],
)
def test_yaml_that_is_refused(body: bytes) -> None:
    with pytest.raises(StatusError) as raised:
        read_object(body, YAML)
    assert raised.value.code == 400


def test_tags_that_make_objects_of_programs_are_plain_text() -> None:
    assert read_object(b"a: !!python/name:os.system x\nb: !!timestamp y", YAML) == {"a": "x", "b": "y"}


@pytest.mark.parametrize("read", [read_json, read_patch])
def test_nesting_ends_somewhere(read: Any) -> None:
    assert read(nested(200))
    for levels in (201, 255, 1_000, 1_020, 100_000):
        with pytest.raises(StatusError) as raised:
            read(nested(levels))
        assert raised.value.code == 400
    assert read(b'{"a":[' + b",".join([b"{}"] * 1_000) + b"]}")


def test_numbers_of_any_length_are_looked_at_for_duplicates() -> None:
    assert duplicates(b'{"a":%b,"b":1.%b,"a":1}' % (b"9" * 5_000, b"9" * 5_000))
    with pytest.raises(StatusError):
        read_json(b'{"a":1%b}' % (b"0" * 5_000))


def test_one_key_of_many_stands_twice() -> None:
    """Counting each of them anew would take minutes."""
    many = b",".join(b'"%d":1' % i for i in range(200_000))
    assert duplicates(b'{%b,"0":1}' % many) == ['duplicate field "0"']

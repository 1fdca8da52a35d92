from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from apiserver.registry import codec

text = st.text(max_size=8) | st.just('"metadata":{')
json = st.recursive(text | st.integers(-100, 100), lambda x: st.dictionaries(text, x, max_size=3), max_leaves=6)


def test_key_order_and_resource_version_left_out() -> None:
    metadata = {"name": "x", "resourceVersion": "5"}
    obj = {"data": {"a": "b"}, "metadata": metadata, "apiVersion": "v1", "kind": "ConfigMap"}
    value = codec.encode(obj)
    assert value == b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"a":"b"}}'
    assert obj["metadata"] == {"name": "x", "resourceVersion": "5"}


def test_metadata_comes_first_also_where_it_is_missing() -> None:
    assert codec.encode({"a": 1, "kind": "A"}) == b'{"kind":"A","metadata":{},"a":1}'
    assert codec.encode({"a": 1}) == b'{"metadata":{},"a":1}'


def test_splice_into_empty_metadata() -> None:
    value = codec.encode({"kind": "A", "apiVersion": "v1", "metadata": {}})
    assert orjson.loads(codec.splice(value, 7))["metadata"] == {"resourceVersion": "7"}


@given(kind=text, metadata=st.dictionaries(text, json, max_size=3), rest=json)
def test_splice_equals_decode(kind: str, metadata: dict, rest: object) -> None:
    value = codec.encode({"spec": rest, "metadata": metadata, "kind": kind, "apiVersion": "v1"})
    assert orjson.loads(codec.splice(value, 12)) == codec.decode(value, 12)
    assert codec.encode(codec.decode(value, 12)) == codec.encode({**codec.decode(value, 13)})

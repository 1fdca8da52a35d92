"""What is cut is read again as it was, whatever it says."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.storage.templates import Kind, Parameter, cut, fill, may_say, text_bytes, texts_bytes

UID = "b39f388e-9277-5f55-a6c2-6979f1a8efac"
COMMIT = "e08dbb1b9697493dac67bc7b08d7b53a0a1e8328"
TIME = "2026-01-01T00:01:00Z"

WORDS = [UID, COMMIT, TIME, "default", "name", "a", "\x01", '"', "é", "k3xa", ""]
texts = st.text(max_size=8) | st.sampled_from(WORDS)
leaves = texts | st.integers(-9, 9) | st.none()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner))
parameters = st.lists(st.tuples(st.sampled_from([k for k in Kind if k not in ("cluster", "name")]), texts))


@given(values, texts, texts, parameters)
def test_what_is_cut_is_read_again(value: object, cluster: str, name: str, said: list[Parameter]) -> None:
    key, text = Key("things", cluster, "", name), orjson.dumps(value)
    found = cut(key, text, said)
    assert found is not None
    assert fill(found.template, key, found.parameters) == text


@given(values, texts, texts, parameters, st.data())
def test_what_a_value_says_it_may_say(
    value: object, cluster: str, name: str, said: list[Parameter], data: st.DataObject
) -> None:
    key, text = Key("things", cluster, "", name), orjson.dumps(value)
    found = cut(key, text, said)
    assert found is not None
    begin, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    quotes = [at for at, char in enumerate(text) if char == ord('"')] or [0]
    begin = data.draw(st.sampled_from([begin, *quotes]))
    assert may_say(found, key, text[begin : max(begin, end)])
    assert may_say(found, key, text[begin : data.draw(st.sampled_from(quotes)) + data.draw(st.integers(1, 3))])


def test_what_no_part_of_a_value_says_is_not_said() -> None:
    key, value = Key("things", "c", "", "n"), orjson.dumps({"metadata": {"name": "n", "is": "it"}})
    found = cut(key, value, [(Kind.TEXT, "it")])
    assert found is not None
    assert not may_say(found, key, b'"ownerReferences":[')
    assert may_say(found, key, b'"metadata":{')
    assert may_say(found, key, b'"it"')


def test_what_a_key_and_a_template_say_is_not_kept() -> None:
    def namespace(cluster: str, uid: str, at: str) -> bytes:
        metadata = {"name": "default", "uid": uid, "creationTimestamp": at, "annotations": {"kcp.io/cluster": cluster}}
        return orjson.dumps({"kind": "Namespace", "metadata": metadata})

    here, there = (Key("namespaces", cluster, "", "default") for cluster in ("k3xa", "b7"))
    one = cut(here, namespace("k3xa", UID, TIME), [(Kind.UID, UID), (Kind.TIME, TIME)])
    uid, at = UID.replace("9", "0"), "1999-12-31T23:59:59Z"
    other = cut(there, namespace("b7", uid, at), [(Kind.UID, uid), (Kind.TIME, at)])
    assert one is not None and other is not None
    assert one.template == other.template
    assert len(one.parameters) == len(other.parameters) == 16 + 5
    assert fill(other.template, there, other.parameters) == namespace("b7", uid, at)


def test_what_is_not_in_its_kinds_form_is_kept_as_text() -> None:
    key = Key("things", "c", "", "n")
    for kind, text in ((Kind.UID, UID.upper()), (Kind.TIME, "2026-01-01T00:01:00.5Z"), (Kind.COMMIT, "E" * 40)):
        value = orjson.dumps({"x": text})
        found = cut(key, value, [(kind, text)])
        assert found is not None
        assert found.template == b'text\n{"x":"\x01"}'
        assert fill(found.template, key, found.parameters) == value


def test_a_value_that_could_be_taken_for_a_template_is_none() -> None:
    assert cut(Key("things", "c", "", "n"), b'{"x":"\x01"}', []) is None
    assert cut(Key("things", "c", "", "n"), b'{\n "x": 1}', []) is None


def test_more_parameters_than_can_be_named_stay_in_the_text() -> None:
    key, said = Key("things", "c", "", "n"), [f"text {n}" for n in range(40)]
    value = orjson.dumps(said)
    found = cut(key, value, [(Kind.TEXT, text) for text in said])
    assert found is not None
    assert fill(found.template, key, found.parameters) == value


@given(st.lists(texts) | st.lists(st.sampled_from(["a", "root:b", "workspaces/root/c"])))
def test_texts_of_many_are_kept_as_each_is(some: list[str]) -> None:
    assert texts_bytes(some) == [text_bytes(text) for text in some]

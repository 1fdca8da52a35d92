"""Lists of any length, in any form: one snapshot, every object once, however much is written meanwhile; and others are
answered between two pages."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.endpoints import reads
from apiserver.endpoints.forms import ObjectForm, PartialForm
from apiserver.endpoints.tables import TableForm
from apiserver.storage import lmdb_history as history
from apiserver.storage.protocol import Delete

META = "g=meta.k8s.io;v=v1"
FORMS = {
    "whole": "application/json",
    "table": f"application/json;as=Table;{META}",
    "partial": f"application/json;as=PartialObjectMetadataList;{META}",
    "yaml": "application/yaml",
}
PATH = "/clusters/root:long/api/v1/configmaps"
LONG = "longcluster00000"

Between = Callable[[], None]


@pytest.fixture
def long(api: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A workspace where pages are of three objects and nothing is collected before it is sent."""
    api.put_workspace("root:long", LONG)
    for form in (ObjectForm, PartialForm, TableForm):
        monkeypatch.setattr(form, "page", 3)
    monkeypatch.setattr(reads, "_WHOLE", 0)
    return api


def maps(api: Any, *names: str, **labels: str) -> list[Any]:
    return [api.manifest("v1 ConfigMap", name, "n", LONG, labels=labels, data={"k": "1"}) for name in names]


def between_pages(monkeypatch: pytest.MonkeyPatch, do: Between) -> None:
    async def wait() -> None:
        do()
        await asyncio.sleep(0)

    monkeypatch.setattr(reads._turns, "wait", wait)


def names(reply: Any) -> list[str]:
    body = reply.body
    if reply.headers.get("content-encoding") == "gzip":
        body = zlib.decompress(body, 31)
    found = yaml.safe_load(body) if reply.headers["content-type"] == "application/yaml" else orjson.loads(body)
    entries = [row["object"] for row in found["rows"]] if "rows" in found else found["items"]
    return [entry["metadata"]["name"] for entry in entries]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_every_form_in_pieces(long: Any, run: Any, form: str, encoding: str, count: int) -> None:
    expected = [f"m{i:02}" for i in range(count)]
    if expected:
        long.put(*maps(long, *expected))
    headers = {"accept": FORMS[form], **({"accept_encoding": encoding} if encoding else {})}
    reply = run(long.get(PATH, **headers))
    assert names(reply) == expected
    assert ("content-length" in reply.headers) == (count <= 3)
    assert ("content-encoding" in reply.headers) == (count > 3 and bool(encoding))
    body = zlib.decompress(reply.body, 31) if "content-encoding" in reply.headers else reply.body
    found = yaml.safe_load(body)
    assert found["metadata"]["resourceVersion"] == str(long.store.revision())
    assert list(found)[:3] == ["kind", "apiVersion", "metadata"]


@pytest.mark.parametrize("form", FORMS)
def test_a_long_page_ends_with_its_token(long: Any, run: Any, form: str) -> None:
    expected = [f"m{i:02}" for i in range(12)]
    long.put(*maps(long, *expected))
    first = run(long.get(f"{PATH}?limit=7", accept=FORMS[form]))
    meta = yaml.safe_load(first.body)["metadata"]
    assert (names(first), meta["remainingItemCount"]) == (expected[:7], 5)
    rest = run(long.get(f"{PATH}?limit=7&continue={meta['continue']}", accept=FORMS[form]))
    assert names(rest) == expected[7:]
    assert set(yaml.safe_load(rest.body)["metadata"]) == {"resourceVersion"}


def test_what_is_left_is_counted_by_nobody(long: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store keeps how many there are, and a token how many are behind it: however many workers answer."""
    long.put(*maps(long, *(f"m{i:02}" for i in range(12))))
    monkeypatch.setattr(history, "count", None)
    left, token = [], ""
    while True:
        meta = run(long.get(f"{PATH}?limit=4&continue={token}")).json["metadata"]
        left.append(meta.get("remainingItemCount"))
        if "continue" not in meta:
            break
        token = meta["continue"]
        long.put(*maps(long, f"m{len(left):02}b"))  # after the list began: not of it
    assert left == [8, 4, None]


def test_a_list_is_as_it_was_when_it_began(long: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [f"m{i:02}" for i in range(10)]
    objects = maps(long, *expected)
    long.put(*objects)
    writes = iter([lambda: long.delete(objects[8]), lambda: long.put(*maps(long, "m03b", "m07b")),
                   lambda: long.put(maps(long, "m09")[0])])  # fmt: skip

    def write() -> None:
        next(writes)()

    between_pages(monkeypatch, write)
    before = long.store.revision()
    reply = run(long.get(PATH))
    assert names(reply) == expected
    assert reply.json["metadata"]["resourceVersion"] == str(before)


def test_a_log_that_is_cut_meanwhile_breaks_the_answer_off(
    long: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    long.put(*maps(long, *(f"m{i:02}" for i in range(10))))

    def cut() -> None:
        long.put(*maps(long, "new"))
        long.store.compact(0)

    between_pages(monkeypatch, cut)
    reply = run(long.get(PATH))
    assert reply.status == 200
    with pytest.raises(orjson.JSONDecodeError):
        _ = reply.json
    monkeypatch.setattr(reads, "_WHOLE", 1 << 20)  # nothing was sent yet: it can still be said
    assert run(long.get(PATH)).status == 410


def test_others_are_answered_between_two_pages(long: Any, run: Any) -> None:
    long.put(*maps(long, *(f"m{i:03}" for i in range(90))))
    order: list[str] = []

    async def read(what: str, path: str) -> None:
        await long.get(path)
        order.append(what)

    async def scenario() -> None:
        lists = [asyncio.ensure_future(read("list", PATH)) for _ in range(3)]
        for _ in range(10):
            await read("get", f"{PATH.replace('configmaps', 'namespaces/n/configmaps')}/m001")
            await asyncio.sleep(0)
        await asyncio.gather(*lists)

    run(scenario())
    assert order == ["get"] * 10 + ["list"] * 3


LABELS = st.sampled_from(["x", "y"])
WRITES = st.lists(st.tuples(st.integers(0, 11), st.sampled_from(["x", "y", None])), max_size=3)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    there=st.dictionaries(st.integers(0, 11), LABELS, max_size=12),
    limit=st.sampled_from([None, 1, 2, 4, 7]),
    select=st.booleans(),
    rounds=st.lists(WRITES, max_size=12),
    form=st.sampled_from(["whole", "table", "partial"]),
)
def test_pages_under_writes(long: Any, there: Any, limit: int | None, select: bool, rounds: Any, form: str) -> None:
    """All pages together are the snapshot at the revision that they name, every object once."""
    api, scheduled = long, iter(rounds)
    live = api.store.scan("configmaps", LONG).records
    state: dict[int, str] = {}

    def write(changes: Any) -> None:
        for number, label in changes:
            [obj] = maps(api, f"m{number:02}", l=label or "")
            if label is None and state.pop(number, None) is not None:
                api.delete(obj)
            elif label is not None:
                api.put(obj)
                state[number] = label

    for record in live:
        api.store.write(Delete(record.key)).result(10)
    write(there.items())
    expected = [f"m{n:02}" for n in sorted(state) if not select or state[n] == "x"]
    at = api.store.revision()

    async def scenario() -> list[str]:
        found, token = [], ""
        while True:
            query = f"limit={limit or ''}&continue={token}&labelSelector={'l%3Dx' if select else ''}"
            reply = await api.get(f"{PATH}?{query}", accept=FORMS[form])
            found += names(reply)
            meta = reply.json["metadata"]
            assert meta["resourceVersion"] == str(at)
            assert len(names(reply)) <= (limit or 99)
            token = meta.get("continue", "")
            if not token:
                return found
            write(next(scheduled, ()))

    original = reads._turns.wait

    async def wait() -> None:
        write(next(scheduled, ()))

    reads._turns.wait = wait  # type: ignore[method-assign]
    try:
        assert asyncio.run(scenario()) == expected
    finally:
        reads._turns.wait = original  # type: ignore[method-assign]

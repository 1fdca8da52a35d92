from __future__ import annotations

import pytest

from apiserver.logs.requestids import RequestIds


def test_each_request_has_its_own() -> None:
    ids = RequestIds()
    assert len({ids.of([]) for _ in range(100)} | {RequestIds().of([])}) == 101


@pytest.mark.parametrize("name", [b"audit-id", b"x-request-id"])
@pytest.mark.parametrize("value", [b"a", b"3f2504e0-4f89-11d3-9a0c-0305e82c3301", b"A.b_c", b"x" * 64])
def test_a_client_s_own_is_kept(name: bytes, value: bytes) -> None:
    assert RequestIds().of([(b"host", b"x"), (name, value)]) == value.decode()


@pytest.mark.parametrize(
    "value", [b"", b"x" * 65, b"a b", b"a\nb", b"a=b", b"a,b", b"\xc3\xa4", b"\x1b[31m", b"-rf", b"a/../b", b'"a"']
)
def test_one_that_is_not_plain_is_not(value: bytes) -> None:
    assert RequestIds().of([(b"audit-id", value)]) != value.decode("latin-1")

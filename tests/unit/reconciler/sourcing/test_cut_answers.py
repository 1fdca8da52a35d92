"""Answers that end too early, wherever that is."""

from __future__ import annotations

import pytest
from support.gitserver import STEPS, GitAsked, Step
from support.sourcevisits import Tenant

from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.kept import TRACKED


def every(length: int) -> list[int]:
    """Where an answer is cut: anywhere near its ends, and now and then between."""
    return sorted({*range(min(16, length)), *range(16, length, 1 + length // 16), *range(max(0, length - 26), length)})


def cut_at(asked: GitAsked, data: bytes, at: int, chunked: bool) -> None:
    if chunked:
        kind = f"Content-Type: application/x-git-upload-pack-{asked.kind}"
        asked.raw(f"HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        asked.raw(f"{len(data):x}\r\n".encode() + data[:at])
    else:
        asked.reply(data[:at], Connection="close")
    asked.handler.close_connection = True


@pytest.mark.parametrize(("old", "step"), [*((False, step) for step in STEPS), (True, "refs"), (True, "fetch")])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_answer_that_is_cut_anywhere_says_nothing(tenant: Tenant, old: bool, step: Step, chunked: bool) -> None:
    """Its end may look like one. Least of all does it say that the branch is gone."""
    tenant.server.old = old
    before = tenant.visit().head
    tenant.repository.commit({"app/web.yaml": "two"})
    data, at = b"", 0

    def cut(asked: GitAsked) -> bool:
        nonlocal data
        if asked.step == step:
            data = data or asked.real()  # git cuts the same pack into other packets another time
            cut_at(asked, data, at, chunked)
        return asked.step == step

    tenant.server.spoil, tried, cuts = cut, 0, [0]
    while cuts:
        at = cuts.pop()
        tenant.second = not old and step != "refs"
        with pytest.raises(SourceFault) as raised:
            tenant.visit()
        assert raised.value.reason in ("Unreachable", "Unusable"), (at, str(raised.value))
        tried += 1
        cuts = every(len(data))[1:] if tried == 1 else cuts
    assert tried > 40
    assert tenant.here.ref(TRACKED + "main") == before and tenant.left_over() == []
    tenant.server.spoil, tenant.second = lambda _: False, False
    assert tenant.visit().head == tenant.repository.head

"""What the store's refusals are to a client."""

from __future__ import annotations

import pytest

from apiserver.endpoints.errors import as_status
from apiserver.model.keys import Key
from apiserver.storage.protocol import Compacted, Conflict, NoSpace


@pytest.mark.parametrize(
    ("error", "code", "reason", "text"),
    [
        (Compacted(1, 2), 410, "Expired", "too old resource version"),
        (Conflict(Key("a", "b", "", "c"), 1, 2), 409, "Conflict", "please try again"),
        (NoSpace("/data/store is full"), 507, "InsufficientStorage", "the server's disk is full: nothing was written"),
        (RuntimeError("a secret"), 500, "InternalError", "see the server's log"),
    ],
)
def test_what_a_client_is_told(error: Exception, code: int, reason: str, text: str) -> None:
    status = as_status(error)
    told = status.as_status()
    assert (status.code, told["reason"]) == (code, reason)
    assert text in told["message"]
    assert "secret" not in told["message"] and "/data" not in told["message"]

"""kubectl's plugin is handed out as it is, to whoever is known, and nothing of the fleet with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tenancy import Sent, Tenancy, bearer
from support.tenants import ADMIN, ANN

PATH = "/plugins/kubectl-ws"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Tenancy]:
    made = Tenancy(tmp_path / "fleet")
    made.plant()
    yield made
    made.close()


def test_whom_nobody_knows_gets_nothing(fleet: Tenancy) -> None:
    (fleet.directory / "plugins").mkdir()
    (fleet.directory / "plugins" / "kubectl-ws").write_bytes(b"#!the plugin")
    (fleet.directory / "plugins" / "other").write_bytes(b"another file")
    for user in (ADMIN, ANN):
        answer = fleet.send(Sent(path=PATH, headers=(bearer(user),)))
        assert (answer.status, answer.body) == (200, b"#!the plugin")
    assert fleet.send(Sent(path=PATH, headers=(bearer("nobody"),))).status == 401
    assert fleet.send(Sent(path=PATH)).status == 401
    assert fleet.send(Sent(path=PATH, headers=(bearer(ADMIN),), method="POST")).status == 405
    for other in ("/plugins/other", "/plugins/", "/plugins/../keys/ca.key", "/plugins/kubectl-ws/x"):
        assert fleet.send(Sent(path=other, headers=(bearer(ADMIN),))).status in (403, 404), other


def test_where_there_is_none_it_says_so(fleet: Tenancy) -> None:
    assert fleet.send(Sent(path=PATH, headers=(bearer(ADMIN),))).status == 404

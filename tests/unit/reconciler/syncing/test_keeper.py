"""The Leases on real targets over connections: one keeper each, in a process that starts and ends."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from support.leases import Clock, Target
from support.liar import Asked, Handler, Liar, answer, refuse

from reconciler.controllers.failures import Expected
from reconciler.controllers.targets import Kubeconfig
from reconciler.syncing import keepers
from reconciler.syncing.client import TargetClient, connect
from reconciler.syncing.keepers import Keepers
from reconciler.syncing.lease import Contender, LeaseSettings

QUICK = LeaseSettings(renew=0.1, look=0.05)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/treeplane-system/leases"


class Api:
    """What a cluster answers about its one Lease. `refused`: a code for each request."""

    def __init__(self) -> None:
        self.target, self.clock = Target(), Clock()
        self.namespace = False
        self.refused = 0
        self._lock = threading.Lock()

    def __call__(self, asked: Asked) -> None:
        with self._lock:
            self._answer(asked)

    def _answer(self, asked: Asked) -> None:
        lease = self.target.lease
        if self.refused:
            refuse(asked, self.refused, "Forbidden", "no rights")
        elif asked.path == "/api/v1/namespaces":
            self.namespace = True
            answer(asked, {"metadata": {"name": "treeplane-system", "uid": "n", "resourceVersion": "1"}})
        elif asked.method == "POST" and not self.namespace:
            refuse(asked, 404, "NotFound")
        elif asked.method == "POST" or (asked.method == "PUT" and self._is_now(json.loads(asked.body))):
            answer(asked, self.target.store(json.loads(asked.body)))
        elif asked.method == "PUT":
            refuse(asked, 409, "Conflict")
        elif lease is None:
            refuse(asked, 404, "NotFound")
        else:
            answer(asked, lease)

    def _is_now(self, lease: Any) -> bool:
        now = self.target.lease
        return now is not None and now["metadata"]["resourceVersion"] == lease["metadata"]["resourceVersion"]

    @property
    def holder(self) -> str | None:
        return (self.target.lease or {}).get("spec", {}).get("holderIdentity")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop waits for what is under way, however slow the machine."""
    monkeypatch.setattr(keepers, "_PATIENCE", 60.0)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Callable[[Handler], Liar]]:
    made: list[Liar] = []

    def start(handler: Handler) -> Liar:
        made.append(Liar(tmp_path / "keys", handler))
        return made[-1]

    yield start
    for each in made:
        each.close()


class Server:
    """A process with its keepers."""

    def __init__(self, writer: str = "a/1", epoch: int = 1) -> None:
        self.told: list[bool] = []
        self.barred = ""
        self.keepers = Keepers(
            Contender(writer, epoch), lambda: "f", QUICK, lambda: self.barred, lambda _, can: self.told.append(can)
        )
        self.clients: list[TargetClient] = []

    def connected(self, kubeconfig: Kubeconfig, key: str = "k") -> TargetClient:
        self.clients.append(connect(kubeconfig))
        self.keepers.connected(key, self.clients[-1])
        return self.clients[-1]

    def ended(self, **idle: bool) -> None:
        self.keepers.end()
        self.keepers.release(idle)
        for each in self.clients:
            each.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.ended()


def test_nothing_is_written_before_the_lease_is_ours(
    server: Server, api: Api, liar: Callable[[Handler], Liar], eventually: Any
) -> None:
    gate = threading.Event()

    def handler(asked: Asked) -> None:
        gate.wait(60)
        api(asked)

    client = server.connected(liar(handler).trusted())
    assert "is not ours" in client.barred()
    assert client.left() == 0
    with pytest.raises(Expected, match="Lease treeplane-system/treeplane-f of the target is not ours"):
        client.create(LEASES, b"{}")
    gate.set()
    eventually(lambda: client.barred() == "")
    assert 0 < client.left() <= 10
    assert api.namespace, "made, since it was absent"
    eventually(lambda: server.told[-1:] == [True])
    server.barred = "another server holds the fleet"
    assert client.barred() == server.barred


def test_a_clean_stop_gives_it_back(api: Api, liar: Callable[[Handler], Liar], eventually: Any) -> None:
    server, target = Server(), liar(api)
    client = server.connected(target.trusted())
    eventually(lambda: not client.barred())
    client.finish()  # as a syncer does at its end
    server.ended(k=True)
    assert api.target.lease is not None
    assert api.holder is None
    assert client.barred()


def test_one_that_was_just_got_when_the_server_stops_is_given_back(api: Api, liar: Callable[[Handler], Liar]) -> None:
    """The cluster has made it, and its answer comes when the stop has begun."""
    made, stopping = threading.Event(), threading.Event()

    def handler(asked: Asked) -> None:
        if asked.method == "POST" and asked.path == LEASES and api.namespace and not made.is_set():
            api.target.store(json.loads(asked.body))
            made.set()
            stopping.wait(60)
            answer(asked, api.target.lease or {})
            return
        api(asked)

    server, target = Server(), liar(handler)
    server.connected(target.trusted())
    assert made.wait(60)
    assert api.holder == "a/1"
    server.keepers.end()
    late = threading.Timer(0.1, stopping.set)
    late.start()
    server.keepers.release({"k": True})
    late.join()
    assert api.holder is None
    for each in server.clients:
        each.close()


def test_where_something_is_still_under_way_it_runs_out_by_itself(
    api: Api, liar: Callable[[Handler], Liar], eventually: Any
) -> None:
    """Also over another target's connection, where two are one cluster."""
    server, target = Server(), liar(api)
    one, other = (server.connected(target.trusted(), key) for key in ("one", "other"))
    eventually(lambda: not one.barred() and not other.barred())
    server.ended(one=False, other=True)
    assert api.holder == "a/1"


def test_a_target_that_is_no_more_gives_nothing_back(
    server: Server, api: Api, liar: Callable[[Handler], Liar], eventually: Any
) -> None:
    """Its cluster may be another target's; and one of the same name is another one."""
    target = liar(api)
    client = server.connected(target.trusted())
    eventually(lambda: not client.barred())
    server.keepers.drop("k")
    assert "stopping" in client.barred()
    assert api.holder == "a/1"
    again = server.connected(target.trusted())
    eventually(lambda: not again.barred())


def test_another_connection_needs_its_own(
    server: Server, api: Api, liar: Callable[[Handler], Liar], eventually: Any
) -> None:
    """It may be to another cluster."""
    before = server.connected(liar(api).trusted())
    eventually(lambda: not before.barred())
    elsewhere = Api()
    now = server.connected(liar(elsewhere).trusted())
    assert before.barred()
    assert before.left() == 0
    eventually(lambda: not now.barred())
    assert before.barred()
    assert elsewhere.holder == "a/1"


def test_an_embedded_target_needs_none(server: Server, api: Api, liar: Callable[[Handler], Liar]) -> None:
    target = liar(api)
    client = server.connected(Kubeconfig(target.kubeconfig(), anywhere=True, embedded=True))
    assert client.barred() == ""
    assert target.asked == []
    server.barred = "another server holds the fleet"
    assert client.barred() == server.barred


def test_missing_rights_are_told_at_once(
    server: Server, api: Api, liar: Callable[[Handler], Liar], eventually: Any
) -> None:
    api.refused = 403
    client = server.connected(liar(api).trusted())
    eventually(lambda: "leases.coordination.k8s.io in namespace treeplane-system" in client.barred())
    keeper = server.keepers.find("k")
    assert keeper is not None
    assert keeper.waited() > 3600, "waiting is no remedy"
    api.refused = 0
    eventually(lambda: not client.barred())
    assert keeper.waited() == 0


def test_who_is_not_let_in_asks_ever_more_seldom(
    server: Server, api: Api, liar: Callable[[Handler], Liar], eventually: Any
) -> None:
    api.refused = 403
    asked: list[float] = []

    def handler(request: Asked) -> None:
        asked.append(time.monotonic())
        api(request)

    client = server.connected(liar(handler).trusted())
    eventually(lambda: len(asked) >= 5)
    assert client.barred()
    # The first of them may be cut short by the connection itself, which wakes who asks.
    waits = [after - before for before, after in pairwise(asked[1:])]
    assert all(wait >= least for wait, least in zip(waits, (0.05, 0.1, 0.2), strict=False)), waits


def test_two_servers_on_one_target(api: Api, liar: Callable[[Handler], Liar], eventually: Any) -> None:
    first, second, target = Server("a/1"), Server("b/1", epoch=2), liar(api)
    mine = first.connected(target.trusted())
    eventually(lambda: not mine.barred())
    other = second.connected(target.trusted())
    eventually(lambda: "b/1 had it with epoch 2, later than ours" in mine.barred())
    eventually(lambda: "may still write for a moment" in other.barred())
    eventually(lambda: first.told[-1] is False)
    assert True in first.told
    second.ended()
    first.ended()

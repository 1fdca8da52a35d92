"""Each alert of examples/monitoring is brought about: by a server's own numbers, in the situation that it is about."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.alerts import firing, rules
from support.tokens import kubeconfig, token

from apiserver.auth import pki
from apiserver.endpoints.counting import RequestCounts
from apiserver.endpoints.kubeexchange import KubeExchange
from apiserver.metrics.machine import ENDS
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, SYNC_TARGETS
from apiserver.registry import announced, indexes, looks, tree
from apiserver.registry.looks import Away, WaitingHead
from apiserver.registry.tree import FleetRecord, put_fleet
from apiserver.scrape import machine
from apiserver.storage.lmdb import open_store
from apiserver.storage.lmdb_environment import StoreSettings
from apiserver.storage.protocol import NoSpace, Put
from reconciler.commands.children import Children
from reconciler.controllers.targets import Kubeconfig
from reconciler.controllers.workqueue import WorkQueue
from reconciler.statusbranch.publisher import Publisher
from reconciler.syncing.renewal import Renewals

DAY = 86400.0
Eventually = Callable[..., Any]


class Watched(NamedTuple):
    """A server, and what Prometheus would make of what it says."""

    running: Any
    promtool: Path
    folder: Path
    patch: pytest.MonkeyPatch
    eventually: Eventually

    def scrape(self) -> str:
        context = ssl.create_default_context(cafile=self.running.keys.ca)
        pair = self.running.keys.pair("admin")
        context.load_cert_chain(pair.certificate, pair.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.running.settings.port, context=context, timeout=30)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            assert answer.status == 200
            return answer.read().decode()
        finally:
            connection.close()

    def write(self, *ops: Any) -> None:
        self.running.store.write(*ops).result(10)

    def put(self, resource: str, conditions: dict[str, tuple[str, str]], name: str = "x") -> None:
        """An object with these conditions: status and reason."""
        told = [{"type": kind, "status": status, "reason": reason, "message": "m"}
                for kind, (status, reason) in conditions.items()]  # fmt: skip
        obj = {"metadata": {"name": name}, "status": {"conditions": told}}
        self.write(Put(Key(resource, "clusterclusterxx", "", name), json.dumps(obj, separators=(",", ":")).encode()))


Situation = Callable[[Watched], Iterator[None] | None]


def not_loaded(watched: Watched) -> None:
    watched.write(put_fleet(FleetRecord(loaded=False)))


def trouble(kind: str) -> Situation:
    def meets(watched: Watched) -> None:
        watched.write(tree.put_troubles({kind: "in words"}))

    return meets


def away(watched: Watched) -> None:
    watched.write(looks.put_away(Away(time.time() - 400, time.time())))


def waits(watched: Watched) -> None:
    watched.write(looks.put_waiting(WaitingHead("a" * 40, time.time() - 400)))


def held(watched: Watched) -> None:
    record = tree.WorkspaceRecord("root:held", "heldheldheldheld", "root", errors=["app.yaml:1: bad"])
    watched.write(tree.put_workspace(record), *tree.listed(record, None))


def locked(watched: Watched) -> None:
    watched.put(LOGICAL_CLUSTERS, {"CommitApplied": ("True", indexes.SECRETS_LOCKED)}, "cluster")


def not_ready(watched: Watched) -> None:
    watched.put(SYNC_TARGETS, {"Ready": ("False", "Unreachable")})


def amiss(watched: Watched) -> None:
    watched.put(indexes.PLACEMENTS, {"Scheduled": ("False", "NoTarget")})


def credentials_end(watched: Watched) -> Iterator[None]:
    class Keeping:
        def refuses(self, _: Any) -> str:
            return ""

    renewals = Renewals(Keeping(), None)  # type: ignore[arg-type]
    now = time.time()
    given = Kubeconfig(kubeconfig(token=token(int(now - 30 * DAY), int(now + 2 * DAY))))
    renewals.sees("k", {"metadata": {"name": "west"}}, given)
    yield
    renewals.forget("k")


def store_fails(watched: Watched) -> None:
    store = open_store(watched.folder / "small", sync=False, settings=StoreSettings(map_size=1 << 20))
    with pytest.raises(NoSpace):
        for number in range(100):
            key = Key("configmaps", "clusterclusterxx", "", f"n{number}")
            store.write(Put(key, b'{"x":"' + b"x" * 100_000 + b'"}')).result(10)
    store.close()


def disk_full(watched: Watched) -> None:
    watched.patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12 - 10**9, 10**9))


def store_full(watched: Watched) -> None:
    watched.patch.setattr(machine, "StoreSettings", lambda: StoreSettings(map_size=1000))


def queue_grows(watched: Watched) -> Iterator[None]:
    queue: WorkQueue[int] = WorkQueue(name="many")
    for number in range(1001):
        queue.add(number)
    yield
    queue.close()


def cannot_tell(watched: Watched) -> None:
    watched.write(announced.put_failing("forge", "401"))


SITUATIONS: dict[str, Situation] = {
    "TreeplaneNotLoaded": not_loaded,
    "TreeplaneFleetHeld": trouble("Held"),
    "TreeplaneFleetTrouble": trouble("StatusBranchRefused"),
    "TreeplaneRepositoryAway": away,
    "TreeplaneCommitWaits": waits,
    "TreeplaneWorkspacesHeld": held,
    "TreeplaneSecretsLocked": locked,
    "TreeplaneTargetNotReady": not_ready,
    "TreeplanePlacementsAmiss": amiss,
    "TreeplaneTargetCredentialsEnd": credentials_end,
    "TreeplaneDiskFull": disk_full,
    "TreeplaneStoreFull": store_full,
    "TreeplaneQueueGrows": queue_grows,
    "TreeplaneCannotTell": cannot_tell,
}
ELSEWHERE = {
    "TreeplaneDown", "TreeplaneProcessesEnd", "TreeplaneStatusNotPushed", "TreeplaneCertificateEnds",
    "TreeplaneStoreFails", "TreeplaneErrors",
}  # fmt: skip
"""In tests of their own."""


@pytest.fixture
def watched(
    running: Any, promtool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> Watched:
    made = Watched(running, promtool, tmp_path, monkeypatch, eventually)
    made.write(put_fleet(FleetRecord(loaded=True)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**9, 9 * 10**11))
    return made


def test_no_alert_is_forgotten() -> None:
    assert {*SITUATIONS} | ELSEWHERE == {*rules()}


@pytest.mark.parametrize("alert", SITUATIONS)
def test_an_alert_is_brought_about(watched: Watched, alert: str) -> None:
    before = watched.scrape()
    under_way = SITUATIONS[alert](watched)
    if under_way is not None:
        next(under_way)
    after = watched.scrape()
    if under_way is not None:
        assert next(under_way, None) is None
    assert firing(watched.promtool, watched.folder, before) == set()
    assert firing(watched.promtool, watched.folder, before, after) == {alert}


def test_certificates_that_end(watched: Watched) -> None:
    text, keys = watched.scrape(), watched.running.keys
    ends = pki.ends(keys.server.certificate.read_bytes())
    assert firing(watched.promtool, watched.folder, text, now=ends - 20 * DAY) == set()
    assert firing(watched.promtool, watched.folder, text, now=ends - 10 * DAY) == {"TreeplaneCertificateEnds"}
    ends = pki.ends(keys.ca.read_bytes())
    assert "TreeplaneCertificateEnds" in firing(watched.promtool, watched.folder, text, now=ends - 170 * DAY)


@pytest.mark.parametrize(("name", "days"), [("given", 14), ("client-ca", 30), ("external-ca", 30)])
def test_given_certificates_that_end(watched: Watched, name: str, days: int) -> None:
    before = watched.scrape()
    ends = pki.ends(watched.running.keys.server.certificate.read_bytes()) - 60 * DAY
    text = f'{before}treeplane_certificate_expiration_timestamp_seconds{{certificate="{name}"}} {ends}\n'
    assert firing(watched.promtool, watched.folder, text, now=ends - (days + 1) * DAY) == set()
    assert firing(watched.promtool, watched.folder, text, now=ends - (days - 1) * DAY) == {"TreeplaneCertificateEnds"}


def test_processes_that_end_again_and_again(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    ENDS.add("api-9", by=0)
    children, before = Children(ended=ENDS.add), watched.scrape()
    monkeypatch.setattr("reconciler.commands.children._SOONEST", 0.0)
    children.add(
        "API worker 9",
        lambda: subprocess.Popen([sys.executable, "-c", "import os; os._exit(9)"], stdin=subprocess.PIPE),
        task="api-9",
    )
    said: list[str] = []
    watched.eventually(lambda: said.extend(children.look()) or len(said) >= 4, seconds=60)
    children.stop(1)
    found = firing(watched.promtool, watched.folder, before, watched.scrape(), stands=1)
    assert found == {"TreeplaneProcessesEnd"}


def test_a_store_that_cannot_be_written(watched: Watched) -> None:
    before = watched.scrape()
    store_fails(watched)
    assert "TreeplaneStoreFails" in firing(watched.promtool, watched.folder, before, watched.scrape(), stands=1)


def test_requests_that_fail(watched: Watched) -> None:
    async def nothing(_: Any = None) -> Any:
        return {}

    counts, scrapes = RequestCounts(), []
    for _ in range(18):
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        exchange = KubeExchange(scope, nothing, nothing)
        began = counts.begin(exchange)
        exchange.status = 503
        counts.end(exchange, began)
        scrapes.append(watched.scrape())
    assert firing(watched.promtool, watched.folder, *scrapes, stands=1) == {"TreeplaneErrors"}


def test_a_status_branch_that_nobody_takes(watched: Watched) -> None:
    class Away:
        """A mirror whose source is away, and its repository, which has a commit to push."""

        is_remote, status_is_remote, is_apart, source_name, status_name = True, True, False, "origin", "origin"

        @property
        def repository(self) -> Any:
            return self

        def ref(self, _: str) -> str:
            return "b" * 40

        def status(self) -> None:
            return None

        def status_seen(self) -> Any:
            raise OSError("away")

    class Writer:
        committed: Callable[[], None]

    writer = Writer()
    publisher = Publisher(Away(), writer)  # type: ignore[arg-type]
    writer.committed()
    assert not publisher._try()
    text = watched.scrape()
    now = time.time()
    assert firing(watched.promtool, watched.folder, text, stands=1, now=now + 500) == set()
    assert firing(watched.promtool, watched.folder, text, stands=1, now=now + 700) == {"TreeplaneStatusNotPushed"}
    publisher._wait(0)

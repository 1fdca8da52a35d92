"""Events of one tenant are not another's, though both are on one sync target and beside each other in the tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.apifleet import ADMIN, ApiFleet
from support.following import Following
from support.loadedfleet import LoadedFleet
from support.shipped import KUBERNETES, SCHEDULING, binding
from support.syncedfleet import FREE, SHOP, SyncedFleet, config, namespace, placement

from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.notices import Notices

BANK = "workspaces/root/bank"
EVENTS = "/api/v1/events"
READ = (
    EVENTS,
    "/apis/events.k8s.io/v1/events",
    "/api/v1/namespaces/web",
    "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster",
    "/apis/scheduling.kcp.io/v1alpha1/placements",
)
"""Where it stands what happened."""


def rules(user: str) -> str:
    """Who may everything in a workspace."""
    return f"""\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: ruler}}
rules:
- {{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}}
- {{nonResourceURLs: ["*"], verbs: ["*"]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: ruler}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ruler}}
subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {user}}}]
"""


class Readers(ApiFleet):
    """Requests to a store that another fleet fills."""

    def __init__(self, fleet: LoadedFleet) -> None:
        self.store, self.directory = fleet.store, fleet.directory
        self.app = self.new_app()


class TwoTenants:
    """ann rules root:shop and bea root:bank; both have a namespace on west, and Events are written of all."""

    def __init__(self, directory: Path) -> None:
        self.synced = SyncedFleet(directory)
        self.synced.fleet.repo.commit(
            {
                f"{BANK}/workspace.yaml": FREE,
                f"{BANK}/apis.yaml": binding(KUBERNETES, SCHEDULING),
                f"{BANK}/namespace.yaml": namespace("vault", app="web"),
                f"{BANK}/ledger.yaml": config("ledger", "vault", a="b"),
                f"{BANK}/placement.yaml": placement(),
                f"{BANK}/rules.yaml": rules("bea"),
                f"{SHOP}/rules.yaml": rules("ann"),
            }
        )
        self.synced.begin()
        self.fleet = self.synced.fleet
        self.tell()
        self.readers = Readers(self.fleet)

    def tell(self) -> None:
        """As a server that starts."""
        self.notices = Notices(self.fleet.store)
        self.following = Following(self.fleet.store, lambda feed: Manager("test", [self.notices], feed, CAREFUL))
        self.following.settle()
        self.synced.hears = self.notices.say

    def bank(self, **files: str | None) -> None:
        self.fleet.commit({f"{BANK}/{name}.yaml": text for name, text in files.items()})

    def settle(self) -> None:
        """What happened stands in Events."""
        self.following.settle()

    def read(self, user: str, path: str, rest: str = EVENTS) -> tuple[int, str]:
        reply = self.readers.call("GET", path, rest, user=user)
        return reply.status, reply.body.decode()

    def reasons(self, user: str, path: str) -> set[tuple[str, str]]:
        items = self.readers.call("GET", path, EVENTS, user=user).json["items"]
        return {(each["involvedObject"]["name"], each["reason"]) for each in items}

    def close(self) -> None:
        self.readers.app.close()
        self.synced.close()


@pytest.fixture
def tenants(tmp_path: Path) -> Iterator[TwoTenants]:
    made = TwoTenants(tmp_path / "two")
    yield made
    made.close()


def test_who_may_read_his_events_reads_nobody_elses(tenants: TwoTenants, eventually: Any) -> None:
    west = tenants.synced.clusters["west"]
    eventually(lambda: {"settings", "ledger"} <= west.names("configmaps"))
    theirs = west.find("configmaps", "ledger")["metadata"]["namespace"]
    west.refuses = {"more": f'host "pay" is defined already in {theirs}/front-door', "loan": "exceeded quota"}
    tenants.synced.commit(more=config("more"))
    tenants.bank(loan=config("loan", "vault"))
    eventually(lambda: {n.about.name for n in tenants.synced.notices} >= {"more", "loan"})
    tenants.bank(ledger="x: [")
    tenants.synced.commit(settings="x: [")
    tenants.settle()

    assert {("more", "CopyRefused"), ("cluster", "Held")} <= tenants.reasons("ann", "root:shop")
    assert {("loan", "CopyRefused"), ("cluster", "Held")} <= tenants.reasons("bea", "root:bank")
    assert {("shop", "Held"), ("bank", "Held")} <= tenants.reasons(ADMIN, "root")

    # What she may not read, she is told nothing of, whichever way she asks.
    for path in ("root", "root:bank", "root:infra", "*"):
        for rest in (EVENTS, "/apis/events.k8s.io/v1/events", "/api/v1/namespaces/default/events?watch=true"):
            status, said = tenants.read("ann", path, rest)
            assert status in (403, 404), (path, rest, said)
            assert "loan" not in said

    # And in what she may read nothing is of the other.
    theirs_too = tenants.fleet.record("root:bank").cluster
    strange = {"bank", "vault", "loan", "ledger", "front-door", "pay", theirs, theirs_too}
    for rest in READ:
        status, said = tenants.read("ann", "root:shop", rest)
        assert status == 200
        assert not {word for word in strange if word in said}, (rest, said)


def test_a_copy_that_is_still_refused_after_a_restart_is_told_of_once(tenants: TwoTenants, eventually: Any) -> None:
    synced, west = tenants.synced, tenants.synced.clusters["west"]
    eventually(lambda: "settings" in west.names("configmaps"))
    west.refuses["more"] = "exceeded quota"
    synced.commit(more=config("more"))
    eventually(lambda: synced.condition(synced.namespace(), "NamespaceSynced").get("status") == "False")
    tenants.settle()
    for times in (2, 3):
        tenants.following.feed.save()
        synced.stop()
        tenants.tell()
        synced.start()
        eventually(lambda times=times: [n.about.name for n in synced.notices] == ["more"] * times)
        tenants.settle()
    items = tenants.readers.call("GET", "root:shop", EVENTS).json["items"]
    assert [each["count"] for each in items if each["reason"] == "CopyRefused"] == [1]

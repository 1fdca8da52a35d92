"""What a target refuses, and what is put right there, on the objects that it concerns: in their tenant's words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.syncedfleet import SyncedFleet, config

from apiserver.model.kinds import GroupResource
from reconciler.syncing.errors import NotServed, TargetRefused
from reconciler.syncing.homes import Homes, Identity
from reconciler.syncing.upstream import Item
from reconciler.syncing.words import upstream_words, why

CONFIG = GroupResource("", "configmaps")
MINE = Item(CONFIG, "shop0", "web", "settings")


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedFleet]:
    made = SyncedFleet(tmp_path / "synced")
    yield made
    made.close()


@pytest.fixture
def homes() -> Homes:
    """On one target: the namespace web of shop0, and another of bank0."""
    made = Homes(Identity("key", "infra0", "west", "u"), lambda *_: None)
    for cluster, namespace in (("shop0", "web"), ("bank0", "vault")):
        manifest = made.manifest(cluster, namespace)
        made.saw({**manifest, "metadata": {**manifest["metadata"], "uid": "u"}})
    return made


def name_of(homes: Homes, cluster: str, namespace: str) -> str:
    home = homes.get(cluster, namespace)
    assert home is not None
    return home.name


def test_a_namespace_has_its_name_of_upstream(homes: Homes) -> None:
    mine = name_of(homes, "shop0", "web")
    assert upstream_words(f'quota of namespace "{mine}" exceeded', MINE, homes) == 'quota of namespace "web" exceeded'
    assert upstream_words("nothing of the kind", MINE, homes) == "nothing of the kind"


def test_what_names_another_tenants_namespace_is_not_told(homes: Homes) -> None:
    theirs = name_of(homes, "bank0", "vault")
    text = f'host "bank.example" is already defined in ingress {theirs}/front-door'
    told = why(TargetRefused(403, "Forbidden", text), MINE, homes)
    assert told.startswith("Forbidden: ")
    assert not {"bank.example", theirs, "front-door", "vault"} & set(told.replace("/", " ").split())
    assert "bank" not in why(NotServed(text), MINE, homes)


def test_what_carries_an_earlier_targets_label_is_not_told_either(homes: Homes) -> None:
    homes.saw({"metadata": {"name": "kcp-older", "uid": "u", "annotations": {}}})
    assert upstream_words("conflict with kcp-older/thing", MINE, homes) == ""


def test_a_refusal_stands_on_the_object_and_its_namespace_until_it_is_over(
    synced: SyncedFleet, eventually: Any
) -> None:
    synced.begin()
    west = synced.clusters["west"]
    eventually(lambda: "settings" in west.names("configmaps"))
    west.refuses["more"] = "exceeded quota"
    synced.commit(more=config("more"))

    def condition() -> dict[str, Any]:
        return synced.condition(synced.namespace(), "NamespaceSynced")

    eventually(lambda: condition().get("status") == "False")
    assert condition()["message"] == "configmaps web/more: Forbidden: exceeded quota"
    [refused] = [notice for notice in synced.notices if notice.reason == "CopyRefused"]
    assert (refused.about.kind, refused.about.namespace, refused.about.name) == ("ConfigMap", "web", "more")
    assert refused.message == "on sync target root:infra:west: Forbidden: exceeded quota"
    del west.refuses["more"]
    synced.commit(more=config("more", a="new"))
    eventually(lambda: condition().get("status") == "True")
    assert [notice.reason for notice in synced.notices] == ["CopyRefused", "CopyTaken"]


def test_what_was_changed_there_is_told_once_it_is_put_right(synced: SyncedFleet, eventually: Any) -> None:
    synced.begin()
    west = synced.clusters["west"]
    eventually(lambda: "settings" in west.names("configmaps"))
    eventually(lambda: synced.condition(synced.fleet.get("root:shop", "placements.scheduling.kcp.io", "prod", ""),
                                        "Synced").get("status") == "True")  # fmt: skip
    assert synced.notices == []
    there = west.find("configmaps", "settings")
    where = f"/api/v1/namespaces/{there['metadata']['namespace']}/configmaps/settings"
    west.strange(where, {**there, "data": {"a": "drifted"}})
    eventually(lambda: west.find("configmaps", "settings")["data"] == {"a": "b"})
    eventually(lambda: [notice.reason for notice in synced.notices] == ["DriftPutRight"])
    synced.stop()
    synced.start()
    eventually(lambda: synced.syncing is not None and synced.syncing.syncers())
    assert len(synced.notices) == 1


def test_what_its_own_controllers_do_while_it_is_asked_about_is_no_drift(
    synced: SyncedFleet, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced.begin()
    west = synced.clusters["west"]

    def ready() -> Any:
        return ((synced.deployment() or {}).get("status") or {}).get("readyReplicas")

    eventually(lambda: ready() == 2 and "settings" in west.names("configmaps"))  # all that is to be written
    there, write = west.find("deployments", "web"), west.write
    where = f"/apis/apps/v1/namespaces/{there['metadata']['namespace']}/deployments/web"
    fields = {**there, "metadata": {**there["metadata"], "managedFields": []}}  # so that the target has to be asked

    def meanwhile(at: str, body: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        if dry_run and west.find("deployments", "web")["status"]["readyReplicas"] == 2:
            west.strange(where, {**fields, "status": {**there["status"], "readyReplicas": 1}})
        return write(at, body, dry_run=dry_run)

    monkeypatch.setattr(west, "write", meanwhile)
    before = [*west.writes]
    west.strange(where, fields)
    eventually(lambda: ready() == 1)
    assert synced.notices == []
    assert west.writes == before

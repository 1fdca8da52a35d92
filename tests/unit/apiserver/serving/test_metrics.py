"""What the server's /metrics say of lists: how many there were, and nothing of where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tenancy import Sent, Tenancy, bearer
from support.tenants import ADMIN, ANN, ROB

from apiserver.endpoints.listcounts import ListCounts

_LIST = re.compile(r'apiserver_cache_list_total\{group="(.*?)",index="",resource="(.*?)",worker="\d+"\} (\d+)')
GIFTS = "/clusters/{}/apis/gifts.example.io/v1/gifts"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Tenancy]:
    made = Tenancy(tmp_path / "fleet")
    made.plant()
    yield made
    made.close()


def scraped(fleet: Tenancy) -> str:
    return fleet.send(Sent(path="/metrics", headers=(bearer(ADMIN),))).body.decode()


def counted(fleet: Tenancy) -> dict[tuple[str, str], int]:
    return {(group, resource): int(count) for group, resource, count in _LIST.findall(scraped(fleet))}


def ask(fleet: Tenancy, path: str, user: str = ANN, **more: str) -> int:
    return fleet.send(Sent(path=path, headers=(bearer(user),), **more)).status


def test_lists_are_counted_by_group_and_resource(fleet: Tenancy) -> None:
    before = counted(fleet)
    for world in ("root:ann:kid", fleet.record("root:ann:kid").cluster, "root:ann:made"):
        assert ask(fleet, GIFTS.format(world)) == 200
    assert ask(fleet, "/clusters/*/api/v1/configmaps", ADMIN) == 200
    assert ask(fleet, "/services/apiexport/root:ann/gifts/clusters/*/apis/gifts.example.io/v1/gifts") == 200
    found = counted(fleet)
    assert found["gifts.example.io", "gifts"] - before.get(("gifts.example.io", "gifts"), 0) == 4
    assert found["", "configmaps"] - before.get(("", "configmaps"), 0) == 1


def test_nothing_else_is_a_list(fleet: Tenancy) -> None:
    before = counted(fleet)
    assert ask(fleet, "/clusters/root:ann/api/v1/configmaps", ROB, query="watch=1") == 200
    assert ask(fleet, "/clusters/root:ann/api/v1/namespaces/default/configmaps/mine") == 200
    assert ask(fleet, "/clusters/root:ann/api/v1/secrets", ROB) == 403
    assert ask(fleet, "/clusters/root:ann/apis/none.example.io/v1/things") == 404
    assert counted(fleet) == before


def test_no_workspace_is_told(fleet: Tenancy) -> None:
    for record in fleet.records():
        ask(fleet, f"/clusters/{record.path}/api/v1/configmaps", ADMIN)
    text = scraped(fleet)
    assert 'resource="configmaps"' in text
    assert [r.path for r in fleet.records() if ":" in r.path and (r.path in text or r.cluster in text)] == []


def test_names_that_tenants_make_up_do_not_fill_the_memory() -> None:
    counts = ListCounts(most=2)
    for number in range(10):
        counts.count("", "pods")
        counts.count(f"g{number}.io", "things")
    *_, others, pods, first = counts.lines("1")
    assert pods.endswith(" 10") and 'resource="pods"' in pods
    assert first == 'apiserver_cache_list_total{group="g0.io",index="",resource="things",worker="1"} 1'
    assert others.endswith(" 9") and 'resource=""' in others

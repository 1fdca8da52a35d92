"""What the server's /metrics say of requests, how much, and nothing of where or whose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.counted import Series, series, total
from support.tenancy import Sent, Tenancy, bearer
from support.tenants import ADMIN, ANN, ROB

from apiserver.metrics import library, pending
from apiserver.metrics.customkinds import CustomKinds

GIFTS = "/clusters/{}/apis/gifts.example.io/v1/gifts"
REQUESTS = "apiserver_request_total"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Tenancy]:
    made = Tenancy(tmp_path / "fleet")
    made.plant()
    yield made
    made.close()


def scraped(fleet: Tenancy) -> str:
    got = fleet.send(Sent(path="/metrics", headers=(bearer(ADMIN),)))
    assert dict(got.headers)[b"content-type"].startswith(b"text/plain; version=0.0.4")
    return got.body.decode()


def ask(fleet: Tenancy, path: str, user: str = ANN, **more: str) -> int:
    return fleet.send(Sent(path=path, headers=(bearer(user),), **more)).status


def more(before: Series, after: Series, name: str, /, **labels: str) -> float:
    return total(after, name, **labels) - total(before, name, **labels)


def test_requests_are_counted_by_what_they_ask_and_how_they_end(fleet: Tenancy) -> None:
    before = series(scraped(fleet))
    for world in ("root:ann:kid", fleet.record("root:ann:kid").cluster, "root:ann:made"):
        assert ask(fleet, GIFTS.format(world)) == 200
    assert ask(fleet, "/clusters/*/api/v1/configmaps", ADMIN) == 200
    assert ask(fleet, "/services/apiexport/root:ann/gifts/clusters/*/apis/gifts.example.io/v1/gifts") == 200
    assert ask(fleet, "/clusters/root:ann/api/v1/namespaces/default/configmaps/mine") == 200
    assert ask(fleet, "/clusters/root:ann/api/v1/secrets", ROB) == 403
    assert ask(fleet, "/clusters/root:ann/version") == 200
    after = series(scraped(fleet))
    gifts = {"group": "gifts.example.io", "version": "v1", "resource": "gifts", "verb": "LIST"}
    maps = {"group": "", "version": "v1", "resource": "configmaps"}
    assert more(before, after, REQUESTS, **gifts, scope="cluster", code="200") == 4
    assert more(before, after, REQUESTS, **maps, verb="LIST", scope="cluster", code="200") == 1
    assert more(before, after, REQUESTS, **maps, verb="GET", scope="resource", code="200") == 1
    assert more(before, after, REQUESTS, resource="secrets", verb="LIST", code="403") == 1
    assert more(before, after, REQUESTS, resource="", verb="GET", code="200") == 1
    assert more(before, after, "apiserver_request_duration_seconds_count", **gifts) == 4
    assert more(before, after, "apiserver_request_duration_seconds_sum", **gifts) > 0
    assert more(before, after, "apiserver_request_duration_seconds_bucket", **gifts, le="+Inf") == 4
    assert more(before, after, "apiserver_cache_list_total", group="gifts.example.io", resource="gifts", index="") == 4


def test_writes_are_counted_with_their_kind_of_patch(fleet: Tenancy) -> None:
    before = series(scraped(fleet))
    where = "/clusters/root:ann/api/v1/namespaces/default/configmaps/applied"
    headers = (bearer(ANN), ("Content-Type", "application/apply-patch+yaml"))
    applied = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"}}'
    sent = Sent("PATCH", where, "fieldManager=t&force=true", headers, applied)
    status = fleet.send(sent).status
    assert fleet.send(Sent("BREW", "/clusters/root:ann/version", "", (bearer(ANN),))).status == 405
    after = series(scraped(fleet))
    assert more(before, after, REQUESTS, verb="APPLY", resource="configmaps", code=str(status)) == 1
    assert more(before, after, REQUESTS, verb="other", code="405") == 1


def test_a_watch_is_counted_while_it_is_open_and_takes_no_time(fleet: Tenancy) -> None:
    before, during = series(scraped(fleet)), list[Series]()
    maps = {"resource": "configmaps", "verb": "WATCH", "scope": "cluster"}

    def look() -> None:
        pending.flush()
        during.append(series(library.text(()).decode()))

    sent = Sent(path="/clusters/root:ann/api/v1/configmaps", query="watch=1", headers=(bearer(ROB),))
    assert fleet.send(sent, look).status == 200
    after = series(scraped(fleet))
    assert total(during[0], "apiserver_longrunning_requests", **maps) == 1
    assert total(during[0], "apiserver_current_inflight_requests") == 0
    assert total(after, "apiserver_longrunning_requests", **maps) == 0
    assert more(before, after, REQUESTS, **maps, code="200") == 1
    assert more(before, after, "apiserver_request_duration_seconds_count", verb="WATCH") == 0


def test_nothing_is_told_that_a_tenant_chose(fleet: Tenancy) -> None:
    """No workspace, no user, no name; nothing of a path that leads nowhere; of a kind only if it is served."""
    before = _requested(series(scraped(fleet)))
    for record in fleet.records():
        ask(fleet, f"/clusters/{record.path}/api/v1/configmaps", ADMIN)
        ask(fleet, f"/clusters/{record.path}/api/v1/namespaces/default/configmaps/madeupname", ADMIN)
    for number in range(300):
        ask(fleet, f"/clusters/root:ann/apis/madeup{number}.example.io/v1/madeups")
        ask(fleet, f"/clusters/root:ann/api/v1/namespaces/default/configmaps/mine/madeup{number}")
    text = scraped(fleet)
    assert 'resource="configmaps"' in text
    assert "madeup" not in text
    assert [r.path for r in fleet.records() if ":" in r.path and (r.path in text or r.cluster in text)] == []
    found = series(text)
    assert total(found, REQUESTS, group="other", resource="other") >= 300
    assert len(_requested(found) - before) < 100


def _requested(found: Series) -> set[frozenset[tuple[str, str]]]:
    return {labels for name, labels in found if name == REQUESTS}


def test_custom_resources_that_have_a_name_are_so_many_and_the_same_in_all_processes(tmp_path: Path) -> None:
    first, second, alone = CustomKinds(tmp_path, 2), CustomKinds(tmp_path, 2), CustomKinds(None, 1)
    assert first.has_name(("a.io", "v1", "as"))
    assert second.has_name(("b.io", "v1", "bs"))
    assert not first.has_name(("c.io", "v1", "cs"))
    assert first.has_name(("b.io", "v1", "bs")) and second.has_name(("a.io", "v1", "as"))
    assert not second.has_name(("c.io", "v1", "cs"))
    assert alone.has_name(("a.io", "v1", "as")) and not alone.has_name(("b.io", "v1", "bs"))
    assert not CustomKinds(None).has_name(("x" * 300, "v1", "xs"))

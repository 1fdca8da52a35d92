"""Nobody learns anything of a tenant that has nothing to do with them, and nobody's writes reach one: fuzzed.

What ann sends is sent to two servers (support/ground), one with a bea and one without her, or with another one: the
answers are the same, byte for byte, what they say of revisions included. No word of bea's stands in any, but those
that ann said herself, and not a byte of what bea has changes. Controllers work in between.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.ground import Ground
from support.guesses import Known
from support.hostilewrites import each_once
from support.intrusion import FORMS, requests, tour
from support.siege import SETTLE, Siege, leaked, text_of
from support.tenancy import URL, Got, Sent, bearer
from support.tenants import ANN, APIS, EVE, GIFTS, export

EXAMPLES = 60
THROUGH_A_DOOR = (
    "/services/apiexport/root:ann:door/gifts/clusters/*/api/v1/configmaps",
    "/services/apiexport/root:ann:door/none/clusters/root:ann/apis",
    "/services/apiexport/root:ann/gifts/clusters/root:ann:door/apis",
    "/services/apiexport/root:ann/gifts/clusters/root:ann:door/apis/gifts.example.io/v1/gifts",
    "/services/apiresourceschema/root:ann:door/apis/apis.kcp.io/v1alpha1/apiresourceschemas",
    "/services/apiresourceschema/root:ann:kid/clusters/root:ann:door/apis/apis.kcp.io/v1alpha1/apiresourceschemas",
    "/services/initializingworkspaces/root:gold/clusters/root:ann:door/api",
    "/targets/root:ann:door:none/api",
)


def test_what_is_unknown_deleted_or_forbidden_is_answered_alike(ground: Ground) -> None:
    """By path and by logical cluster, whatever state it is in, to whoever may not enter: one answer."""
    world = ground.world("apart")
    world.made("root:ann:made:gone", ANN, "lab")
    gone = world.record("root:ann:made:gone").cluster
    assert world.unmake("root:ann:made:gone", ANN).status == 200 and "root:ann:made:gone" not in world.paths()
    theirs = ground.known(False).clusters
    names = ["root:none", "nosuchcluster0000", "root:ann:made:gone", gone, *theirs, *theirs.values()]
    rests = ("/", "/api", "/api/v1/configmaps", "/openapi/v3", "/metrics", f"/apis/{APIS}/apiexports/gifts")
    methods, queries = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"), ("", "watch=1")
    asked = [Sent(*each) for each in product(methods, rests, queries)]
    for sent, headers in product(asked, ((bearer(ANN),), (bearer(EVE), ("Accept", FORMS[0])), (bearer(ground.robot),))):
        told = {
            named_by_nobody(world.send(sent._replace(path=f"/clusters/{name}{sent.path}", headers=headers)))
            for name in names
        }
        assert len(told) == 1, (sent, told)
        assert {got.status for got in told} <= {403, 405, 501}
    world.close()


def named_by_nobody(got: Got) -> Got:
    """Without the request's own name, which is drawn by chance."""
    return got._replace(headers=tuple(each for each in got.headers if each[0] != b"audit-id"))


def test_a_mount_that_leads_to_bea_tells_nothing(ground: Ground) -> None:
    """Not of which workspaces she has, and not of those that are nobody's."""
    siege, widget = Siege(ground, shared=False), "/clusters/root:ann/apis/ann.example.io/v1/widgets/w/status"
    headers = (bearer(ANN), ("Content-Type", "application/merge-patch+json"))
    for world in (*siege.foreign.clusters, *siege.foreign.clusters.values(), "root:none", "root", "root:ann:door"):
        told = {"status": {"URL": f"{URL}/clusters/{world}", "phase": "Ready"}}
        assert siege.step(0, Sent("PATCH", widget, "", headers, json.dumps(told).encode())) == 200
        siege.step(1, SETTLE)
        for rest in ("/apis/tenancy.kcp.io/v1alpha1/workspaces/door", "/apis/tenancy.kcp.io/v1alpha1/workspaces"):
            assert siege.step(2, Sent("GET", f"/clusters/root:ann{rest}", "", headers)) == 200
        for rest in ("/api", "/apis", "/openapi/v2", "/api/v1/configmaps", "/version", "/apis/gifts.example.io/v1"):
            siege.step(3, Sent("GET", f"/clusters/root:ann:door{rest}", "", headers))
        siege.step(4, Sent("POST", "/clusters/root:ann:door/api/v1/namespaces/default/configmaps", "", headers, b"{}"))
        for path in THROUGH_A_DOOR:
            siege.step(5, Sent("GET", path, "", headers))
    siege.check()
    siege.close()


def test_a_home_is_like_any_where_there_are_others(ground: Ground) -> None:
    siege, home = Siege(ground, shared=False), "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces/~"
    for number, status in ((0, 429), (2, 200)):
        assert siege.step(number, Sent("GET", home, "", (bearer(ANN),))) == status
        siege.step(number + 1, SETTLE)
    for world, status in (("user:ann", 200), ("user:bea", 403), ("user:eve", 403)):
        for rest in ("/api/v1/configmaps", "/apis", "/apis/core.kcp.io/v1alpha1/logicalclusters"):
            assert siege.step(4, Sent("GET", f"/clusters/{world}{rest}", "", (bearer(ANN),))) == status
    siege.check()
    siege.close()


def test_who_knows_an_identity_sees_what_kinds_it_is_of_and_no_objects(ground: Ground) -> None:
    """An export's identity is told to its consumers. Whoever claims by it sees the schemas, as in kcp, and of objects
    those that consumers of both grant."""
    siege = Siege(ground, shared=False)
    known, headers = Known.of(ground, shared=False), (bearer(ANN), ("Content-Type", "application/json"))
    api, goods, _ = known.kinds[1]
    claim = {"group": api.split("/")[1], "resource": goods, "verbs": ["*"], "identityHash": siege.foreign.hashes[0]}
    body = json.dumps(export(GIFTS, "claiming", permissionClaims=[claim])).encode()
    here, _ = siege.worlds
    assert here.send(Sent("POST", f"/clusters/root:ann:made/apis/{APIS}/apiexports", "", headers, body)).status == 201
    here.settle()
    view = "/services/apiexport/root:ann:made/claiming/clusters"
    said = f"{text_of(Sent(path=view))} {goods} {siege.foreign.hashes[0]}"
    schema = here.send(Sent(path=f"{view}/*/openapi/v3/{api}", headers=headers))
    assert schema.status == 200 and leaked(schema, siege.foreign, said)
    for cluster in ("*", *siege.foreign.clusters):
        for query in ("", "limit=1", "watch=1"):
            got = here.asked(Sent("GET", f"{view}/{cluster}/{api}/{goods}", query, headers))
            assert b'"items":[{' not in got.body and b"ADDED" not in got.body
    siege.close()


@pytest.mark.parametrize("shared", [False, True], ids=["nothing to do with her", "a consumer of hers"])
def test_whatever_of_beas_ann_names_at_home_nothing_comes_of_it(ground: Ground, shared: bool) -> None:
    """Neither at once nor when controllers have looked at it."""
    siege, at = Siege(ground, shared=shared), "/clusters/root:ann:made"
    known, headers = Known.of(ground, shared=shared), (bearer(ANN), ("Content-Type", "application/json"))
    for number, (rest, obj) in enumerate(each_once(known)):
        siege.step(number, Sent("POST", at + rest, "", headers, json.dumps(obj).encode()))
    siege.step(-1, SETTLE)
    for number, rest in enumerate(sorted({rest for rest, _ in each_once(known)})):
        siege.step(number, Sent("GET", at + rest, "", headers))
    siege.check()
    siege.close()


def histories(known: Known) -> st.SearchStrategy[list[Any]]:
    one = requests(known)
    return st.lists(st.one_of(one, one, one, one, one, st.just(SETTLE)), min_size=1, max_size=25)


@pytest.mark.parametrize("shared", [False, True], ids=["nothing to do with her", "a consumer of hers"])
def test_wherever_ann_looks_there_is_nothing_of_beas(ground: Ground, shared: bool) -> None:
    siege = Siege(ground, shared=shared)
    statuses = Counter(siege.step(number, sent) for number, sent in enumerate(tour(Known.of(ground, shared=shared))))
    siege.check()
    siege.close()
    assert statuses[200] > 200 and statuses[403] > 500


@pytest.mark.parametrize("shared", [False, True], ids=["nothing to do with her", "a consumer of hers"])
def test_nothing_that_ann_sends_tells_her_of_bea_or_reaches_her(ground: Ground, shared: bool) -> None:
    known = Known.of(ground, shared=shared)

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
    @given(histories(known))
    def check(steps: list[Any]) -> None:
        siege = Siege(ground, shared=shared)
        try:
            for number, step in enumerate(steps):
                siege.step(number, step)
            siege.step(len(steps), SETTLE)
            siege.check()
        finally:
            siege.close()

    check()

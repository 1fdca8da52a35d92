"""No header, credential or extra attribute makes a request succeed that its sender's rights do not: fuzzed.

What succeeds is held against `may`, which knows of the few users of support/tenants what they are granted: themselves,
and whom they may impersonate where they ask. It is a bound: what it allows may be refused still, for a scope, say.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson
import pytest
from cryptography import x509
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.borrowing import SYSTEM, WARRANT, impersonations
from support.ground import Ground, World
from support.guesses import Known
from support.tenancy import Got, Sent, bearer
from support.tenants import ANN, BEA, DEVS, EVE, OPS, ROB, SAM, SUE, binding, thing

from apiserver.auth.peer import Peer
from apiserver.auth.pki import ensure_keys, issue_client
from apiserver.auth.pki_clients import ClientCertificates
from apiserver.auth.user import PRIVILEGED
from apiserver.auth.workspaces import is_workspaces

ROBOT, NOBODY = "system:serviceaccount:default:robot", "nobody"
HERS = "the robot of root:ann"
"""Who bears its token. The name alone is that of any workspace's."""
ALL = "everything"
Header = tuple[str, str]


class Ask(NamedTuple):
    """One thing that may be asked for; `right`: what somebody has to hold, None where no user of ours may."""

    method: str
    rest: str
    right: str | None
    body: bytes = b""


MAP = json.dumps(thing("v1", "ConfigMap", "new")).encode()
REACHING = json.dumps(binding("root:bee", "gifts")).encode()
ASKS = (
    Ask("GET", "/api/v1/configmaps", "read configmaps"),
    Ask("GET", "/api/v1/namespaces/default/secrets", "read secrets"),
    Ask("GET", "/api/v1/namespaces/default/configmaps/mine", "read configmaps"),
    Ask("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", "write", MAP),
    Ask("DELETE", "/api/v1/namespaces/default/secrets?dryRun=All", "write"),
    Ask("GET", "/apis/tenancy.kcp.io/v1alpha1/workspaces", "rule"),
    Ask("GET", "/api", "enter"),
    Ask("POST", "/apis/apis.kcp.io/v1alpha2/apibindings?dryRun=All", None, REACHING),
)
ELSEWHERE = (
    "/clusters/*/api/v1/configmaps", "/git/fleet.git/info/refs?service=git-upload-pack", "/metrics",
    "/clusters/system:admin/api",
    "/services/apiexport/root:bee/gifts/clusters/*/api/v1/configmaps",
    "/services/apiresourceschema/root:bee/apis/apis.kcp.io/v1alpha1/apiresourceschemas",
    "/services/initializingworkspaces/{bee}:hers/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters",
    "/clusters/root/api/v1/configmaps", "/clusters/user:bea/api/v1/configmaps",
)  # fmt: skip
RIGHTS: dict[str, dict[str, set[str]]] = {
    "root:ann": {
        ANN: {ALL}, OPS: {ALL}, ROB: {"enter", "read configmaps"}, DEVS: {"enter", "read secrets"}, SUE: {"enter"},
        HERS: {"enter", "read configmaps", "read secrets", "write"},
        ROBOT: {"enter", "read configmaps", "read secrets", "write"},
    },
    "root:ann:kid": {ANN: {ALL}, ROBOT: {"enter"}},
    "root:bee": {name: {ALL} for name in (BEA, SAM, DEVS, ROBOT)},
}  # fmt: skip
"""By workspace what users and groups are granted."""
LENT: dict[str, dict[str, set[str]]] = {
    "root:ann": {ANN: {ALL}, SUE: {ROB, DEVS}, HERS: {ROBOT}},
    "root:ann:kid": {ANN: {ALL}},
}
"""Whom they may impersonate there."""


def may(who: str, headers: tuple[Header, ...], world: str, right: str | None) -> bool:
    """Whether somebody may be let do something, whatever else is sent."""
    said = [(key.lower(), value) for key, value in headers if key.lower().startswith("impersonate-")]
    users = {value for key, value in said if key == "impersonate-user" and value}
    if not users:
        return _granted({who}, world, right)
    people = users | {value for key, value in said if key == "impersonate-group"}
    warrants = [value for key, value in said if unquote(key) == f"impersonate-extra-{WARRANT}"]
    people |= {name for text in warrants for name in _warranted(text)}
    if any(is_workspaces(name) for name in people):
        return False
    lent = LENT.get(world, {}).get(who, set())
    if not lent or PRIVILEGED & people:
        return False
    # Of several users that are named one counts, so all the others need not be lent.
    return any(ALL in lent or user in lent for user in users) and _granted(
        people if ALL in lent else people & lent, world, right
    )


def _granted(people: set[str], world: str, right: str | None) -> bool:
    granted = {each for name in people for each in RIGHTS.get(world, {}).get(name, ())}
    return right is not None and (ALL in granted or right in granted)


def _warranted(text: str) -> set[str]:
    try:
        found = json.loads(text)
    except ValueError:
        return set()
    return {found["user"], *found["groups"]} if isinstance(found, dict) else set()


class Caller(NamedTuple):
    """Credentials, and who that is."""

    who: str
    headers: tuple[Header, ...]
    peer: Peer | None = None


@pytest.fixture
def world(ground: Ground) -> Iterator[World]:
    found = ground.world("apart")
    yield found
    found.close()


def token(world: World, *audiences: str) -> str:
    """Of the robot of root:ann."""
    body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {"audiences": list(audiences)}}
    found: str = world.do("POST", "root:ann", "/api/v1/namespaces/default/serviceaccounts/robot/token", body)["status"][
        "token"
    ]
    return found


def forged(good: str, **claims: Any) -> Iterator[str]:
    """What somebody makes of a token who has no key."""
    head, body, signature = good.split(".")
    told = orjson.loads(base64.urlsafe_b64decode(body + "=="))
    other = _encoded({**told, **claims, "kubernetes.io": {**told["kubernetes.io"], **claims}})
    yield f"{head}.{other}.{signature}"
    yield f"{_encoded({'alg': 'none'})}.{other}."
    key = orjson.loads(base64.urlsafe_b64decode(head + "=="))["kid"]
    yield f"{_encoded({'alg': 'HS256', 'kid': key})}.{other}.{signature}"


def _encoded(found: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(found)).decode().rstrip("=")


def stranger(world: World, directory: Path) -> Peer:
    """With a certificate of another CA that says system:masters, as a connection's handshake judges it."""
    pair = issue_client(ensure_keys(directory).directory, "eve", "admin", ["system:masters"])
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    return ClientCertificates(ensure_keys(world.keys).ca).peer(certificate, [])


def callers(world: World, directory: Path) -> list[Caller]:
    theirs = world.foreign.clusters["root:bee"] if world.foreign else ""
    good, strange = token(world), stranger(world, directory)
    bad = [
        *forged(good, clusterName=theirs),
        *forged(good, sub="system:admin"),
        token(world, theirs),
        token(world, "x"),
    ]
    basic = base64.b64encode(f"ann:{ANN}".encode()).decode()
    return [
        *(Caller(name, (bearer(name),)) for name in (ANN, SUE, ROB, EVE)),
        Caller(HERS, (bearer(good),)),
        Caller(NOBODY, ()),
        *(Caller(NOBODY, (bearer(each),)) for each in bad),
        Caller(NOBODY, (), strange),
        Caller(ROB, (bearer(ROB),), strange),
        Caller(ROB, (bearer(ROB), bearer(ANN))),
        Caller(NOBODY, (("Authorization", f"Basic {basic}"), bearer(ANN))),
    ]


def sent(ask: Ask, base: str, caller: Caller, headers: tuple[Header, ...]) -> Sent:
    path, _, query = f"{base}{ask.rest}".partition("?")
    kind = (("Content-Type", "application/json"),) if ask.body else ()
    return Sent(ask.method, path, query, (*caller.headers, *headers, *kind), ask.body, caller.peer)


def let(got: Got) -> bool:
    return got.status < 400


def test_each_may_what_they_are_granted(world: World, tmp_path: Path) -> None:
    """Without further headers it is not a bound."""
    for caller, place, ask in product(callers(world, tmp_path), RIGHTS, ASKS):
        got = world.send(sent(ask, f"/clusters/{place}", caller, ()))
        assert let(got) == may(caller.who, (), place, ask.right), (caller, place, ask, got)


def test_what_succeeds_is_within_the_rights_of_who_asks(ground: Ground, world: World, tmp_path: Path) -> None:
    known = Known.of(ground, shared=False)
    places = [*["root:ann"] * 3, *RIGHTS, known.foreign.clusters["root:bee"], "root:bee:sites", "root:none"]

    @settings(max_examples=1500, suppress_health_check=list(HealthCheck), database=None)
    @given(
        st.sampled_from(callers(world, tmp_path)), impersonations(known), st.sampled_from(places), st.sampled_from(ASKS)
    )
    def check(caller: Caller, headers: tuple[Header, ...], place: str, ask: Ask) -> None:
        got = world.send(sent(ask, f"/clusters/{place}", caller, headers))
        assert may(caller.who, headers, place, ask.right) or not let(got), got

    check()


def test_whoever_is_named_with_whatever_group(world: World) -> None:
    """One by one: the rights that they have elsewhere are no rights here, nor are hers there."""
    users = (ROB, SAM, BEA, ANN, ROBOT, "x")
    bodies = [json.dumps({"user": user, "groups": [DEVS], "extra": {}}) for user in (SAM, ANN, ROB)]
    warrants = [(f"Impersonate-Extra-{WARRANT}", text) for text in bodies]
    groups = [(), *((("Impersonate-Group", group),) for group in SYSTEM), *((each,) for each in warrants)]
    for who, user, group in product((ANN, SUE, ROB), users, groups):
        headers = (("Impersonate-User", user), *group)
        for place, ask in product(RIGHTS, ASKS):
            got = world.send(sent(ask, f"/clusters/{place}", Caller(who, (bearer(who),)), headers))
            assert may(who, headers, place, ask.right) or not let(got), (who, headers, place, ask, got)


def test_what_is_nobodys_here_stays_so(ground: Ground, world: World, tmp_path: Path) -> None:
    known = Known.of(ground, shared=False)
    paths = [path.format(bee=known.foreign.clusters["root:bee"]) for path in ELSEWHERE]

    @settings(max_examples=500, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(callers(world, tmp_path)), impersonations(known), st.sampled_from(paths))
    def check(caller: Caller, headers: tuple[Header, ...], path: str) -> None:
        assert not let(world.send(sent(Ask("GET", path, None), "", caller, headers)))

    check()


@pytest.mark.parametrize(("headers", "resource", "place"), [
    ([("Impersonate-User", ROB)], "configmaps", "root:ann"),
    ([("Impersonate-User", ROB), ("Impersonate-Group", DEVS)], "secrets", "root:ann"),
])  # fmt: skip
def test_who_may_impersonate_does(world: World, headers: list[Header], resource: str, place: str) -> None:
    for caller, right in (
        (SUE, True),
        (ANN, True),
        (ROB, resource == "configmaps" and len(headers) == 0),
        (EVE, False),
    ):
        got = world.send(Sent(path=f"/clusters/{place}/api/v1/{resource}", headers=(bearer(caller), *headers)))
        assert let(got) == right, caller
        assert may(caller, tuple(headers), place, f"read {resource}") == right


@pytest.mark.parametrize("group", sorted(PRIVILEGED))
@pytest.mark.parametrize("through", ["group", "warrant"])
def test_groups_beyond_a_workspace_are_not_lent_by_who_rules_one(world: World, group: str, through: str) -> None:
    warrant = json.dumps({"user": "x", "groups": [group], "extra": {}})
    sent_as = {
        "group": ("Impersonate-Group", group),
        "warrant": (f"Impersonate-Extra-{WARRANT.replace('/', '%2f')}", warrant),
    }
    headers = (bearer(ANN), ("Impersonate-User", "x"), sent_as[through])
    for place in (*RIGHTS, "root", "*"):
        got = world.send(Sent(path=f"/clusters/{place}/api/v1/configmaps", headers=headers))
        assert not let(got)

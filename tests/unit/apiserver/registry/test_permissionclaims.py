"""What a provider is granted: what both the export and the binding say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from apiserver.model.identity import base62_sha224
from apiserver.registry import permissionclaims as claims
from apiserver.registry.permissionclaims import Claimed

Object = dict[str, Any]


def claim(resource: str = "secrets", *verbs: str, identity: str = "", **more: Any) -> Object:
    return {"group": "", "resource": resource, "identityHash": identity, "verbs": list(verbs or ("*",)), **more}


def accepted(resource: str = "secrets", *verbs: str, state: str = "Accepted", **more: Any) -> Object:
    return claim(resource, *verbs, **{"selector": {"matchAll": True}, **more}, state=state)


def granted(asked: list[Object], said: list[Object]) -> list[claims.ClaimGrant]:
    return claims.grants({"spec": {"permissionClaims": asked}}, {"spec": {"permissionClaims": said}})


@pytest.mark.parametrize(
    ("asked", "said", "verbs"),
    [
        (["get", "list"], ["list", "watch"], {"list"}),
        (["*"], ["get"], {"get"}),
        (["get"], ["*"], {"get"}),
        (["*"], ["*"], {"*"}),
        (["get"], ["list"], set()),
    ],
)
def test_verbs_are_those_of_both(asked: list[str], said: list[str], verbs: set[str]) -> None:
    found = granted([claim("secrets", *asked)], [accepted("secrets", *said)])
    assert {verb for each in found for verb in each.verbs} == verbs


@pytest.mark.parametrize(
    "said",
    [
        [],
        [accepted(state="Rejected")],
        [accepted("configmaps")],
        [accepted(identity="other")],
        [{key: value for key, value in accepted().items() if key != "state"}],
    ],
)
def test_what_is_not_accepted_is_not_granted(said: list[Object]) -> None:
    assert granted([claim()], said) == []


def test_what_nobody_asks_for_is_not_granted() -> None:
    assert granted([], [accepted()]) == []


def test_a_selector_chooses_among_objects_and_an_empty_one_chooses_none() -> None:
    [labelled] = granted([claim()], [accepted(selector={"matchLabels": {"a": "b"}})])
    assert labelled.selects({"a": "b", "c": "d"}) and not labelled.selects({"a": "c"}) and not labelled.selects({})
    assert labelled.labels == {"a": "b"}
    [silent] = granted([claim()], [accepted(selector={})])
    assert not silent.selects({})
    [whole] = granted([claim()], [accepted()])
    assert whole.selects({}) and whole.labels == {}


def test_the_label_is_kcps() -> None:
    """Digests of the claim as Go writes it, without verbs, and of the export's cluster and name."""
    assert claims.label_key("c", "e") == "claimed.internal.apis.kcp.io/" + base62_sha224("c:e")
    assert claims.label_value(Claimed("", "secrets", "")) == base62_sha224('{"resource":"secrets","verbs":null}')
    whole = '{"group":"g.io","resource":"widgets","verbs":null,"identityHash":"h"}'
    assert claims.label_value(Claimed("g.io", "widgets", "h")) == base62_sha224(whole)
    assert len(hashlib.sha224(whole.encode()).digest()) == 28


def test_what_became_of_claims_is_told() -> None:
    asked = [claim("secrets", "get", "list"), claim("configmaps", defaultSelector={"matchLabels": {"a": "b"}})]
    said = [accepted("secrets", "get"), accepted("configmaps"), accepted("events"), accepted("pods", state="Rejected")]
    answer = claims.answered(asked, {"spec": {"permissionClaims": said}})
    assert [each["resource"] for each in answer.applied] == ["configmaps", "secrets"]
    assert answer.unexpected == ('unexpected/invalid claim for events. (identity "")',)
    assert answer.mismatched == (
        "configmaps. (selector differs from defaultSelector)",
        "secrets. (verbs: accepted [get], exported [get list])",
    )

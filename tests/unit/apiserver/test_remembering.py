"""What is remembered of requests and objects: nothing long, with which a client could fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apiserver.auth.policy import Policy
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import Attributes, User
from apiserver.endpoints import negotiation, paths
from apiserver.endpoints.exchange import Exchange
from apiserver.model import kinds
from apiserver.model.errors import StatusError
from apiserver.registry.printers import base
from apiserver.schema import fieldset

LONG = "x" * 5000


@pytest.mark.parametrize(("cached", "call"), [
    (paths._remembered, lambda text: paths.parse(f"/clusters/root/{text}")),
    (fieldset._remembered, lambda text: fieldset.canonical({f'k:{{"name":"{text}"}}': {}})),
    (base._since, base.since),
    (base._seconds, lambda text: base.between(text, text)),
])  # fmt: skip
def test_short_is_remembered_and_long_is_not(cached: Any, call: Callable[[str], Any]) -> None:
    cached.cache_clear()  # which other tests may have filled
    before = cached.cache_info().currsize
    call(LONG)
    assert cached.cache_info().currsize == before
    call(f"short-{before}-{cached.__name__}")
    assert cached.cache_info().currsize > before


def test_what_is_too_long_for_what_it_is_is_refused() -> None:
    with pytest.raises(StatusError, match="Accept header"):
        negotiation.negotiate(f"application/json;{LONG}", many=False)
    with pytest.raises(ValueError, match="GroupVersion"):
        kinds.split_api_version(LONG)
    assert kinds.split_api_version.cache_info().maxsize == 1024


def test_a_long_name_is_judged_and_forgotten() -> None:
    authorizer, policy = Authorizer(None), Policy()  # type: ignore[arg-type]
    for name, remembered in ((LONG, 0), ("a", 1)):
        assert authorizer._granted("root", policy, User("ann"), Attributes("get", name=name)) is None
        assert len(authorizer._decided) == remembered


def test_parameters_have_a_bound() -> None:

    scope = {"method": "GET", "path": "/", "headers": [], "query_string": b"&".join([b"a=1"] * 2000)}
    with pytest.raises(StatusError) as raised:
        _ = Exchange(scope, None, None).query  # type: ignore[arg-type]
    assert raised.value.code == 400

"""Objects of one kind in other versions."""

from __future__ import annotations

import pytest

from apiserver.model.errors import StatusError
from apiserver.registry.conversion import convert, stored
from apiserver.registry.custom import kinds_of_crd

VERSIONS = [
    {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}
    for name in ("v1", "v2")
]
SPEC = {"group": "z.io", "scope": "Cluster", "names": {"plural": "ws", "kind": "W"}, "versions": VERSIONS}
HOOK = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://x"}}}
OBJECT = {"apiVersion": "z.io/v1", "kind": "W", "metadata": {"name": "a"}, "more": 1}


def test_strategy_none_replaces_the_version() -> None:
    v1, v2 = kinds_of_crd({"spec": SPEC})
    assert convert(OBJECT, v1) is OBJECT
    assert convert(OBJECT, v2) == {**OBJECT, "apiVersion": "z.io/v2"}
    assert "more" not in stored({**OBJECT, "apiVersion": "z.io/v2"}, v1)


def test_nobody_guesses_where_a_webhook_is_not_to_be_called() -> None:
    v1, v2 = kinds_of_crd({"spec": {**SPEC, "conversion": HOOK}})
    assert convert(OBJECT, v1) is OBJECT
    with pytest.raises(StatusError, match="converted by webhooks"):
        convert(OBJECT, v2)

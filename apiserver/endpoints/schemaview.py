"""The schema view: the APIResourceSchemas that a workspace has bound, wherever they stand.

    /services/apiresourceschema/<consumer>/apis/apis.kcp.io/v1alpha1/apiresourceschemas
    /services/apiresourceschema/<consumer>/clusters/<provider>/apis/…      of one provider
    /services/apiresourceschema/<consumer>/clusters/<consumer>/apis/…      as kcp's programs ask: of all

Read only, for whoever has the verb on APIBindings in the consumer's workspace: these name what is shown. Of providers
nothing else is seen. A schema that its provider took away is not shown, though the workspace is served with it still.
Called by realms and, as any view, by kube.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import orjson

from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.endpoints.judging import AccessJudge
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, SCHEMAS
from apiserver.registry.boundresources import SchemaRef, recorded_by
from apiserver.registry.kinds import KindTable, common_builtins
from apiserver.registry.served import READ, ServedKind
from apiserver.storage.protocol import Change, Store

Object = dict[str, Any]
Bound = frozenset[SchemaRef]
_LIST = "list"


class SchemaView:
    """Of one request. `home`: the consumer's logical cluster."""

    def __init__(self, store: Store, home: str) -> None:
        self._store, self._home = store, home

    @property
    def home(self) -> str:
        return self._home

    def kinds(self) -> KindTable:
        return self._kinds

    @cached_property
    def _kinds(self) -> KindTable:
        found = (kind for kind in common_builtins().all() if kind.storage == SCHEMAS)
        nothing = frozenset[str]()
        return KindTable(replace(k, verbs=READ, subresources=nothing, digest=f"{k.digest}/read") for k in found)

    def kind(self, group: str, version: str, resource: str) -> ServedKind | None:
        return self._kinds.by_resource(group, version, resource)

    def authorize(self, judge: AccessJudge, user: User, asked: Attributes) -> AccessDecision:
        verb = _LIST if asked.path else asked.verb
        return judge.authorize(self._home, user, Attributes(verb, "apis.kcp.io", "v1alpha2", "apibindings"))

    def deciding(self, asked: Attributes) -> Iterable[str]:  # noqa: ARG002
        return (self._home,)

    def sight(self, kind: ServedKind, verb: str) -> SchemaSight:  # noqa: ARG002
        return SchemaSight(self._store, self._home)


class SchemaSight:
    """What the APIBindings of a logical cluster name."""

    def __init__(self, store: Store, home: str) -> None:
        self._home = home
        self.since = store.revision()
        self.at: int | None = None
        self.token: Hashable = ("schemas", home)
        values = (record.value for record in store.scan(BINDINGS, home, count=False).records)
        self._bound: Bound = frozenset().union(*(bound_in(value, home) for value in values))

    @property
    def clusters(self) -> Sequence[str]:
        return sorted({each.cluster for each in self._bound})

    def cluster_of(self, name: str) -> str | None:
        return next((each.cluster for each in sorted(self._bound) if each.name == name), None)

    def shows(self, key: Key, value: bytes) -> bool:
        """Another schema of the name of one that is bound is none."""
        named = [each for each in self._bound if (each.cluster, each.name) == (key.cluster, key.name)]
        schema = orjson.loads(value) if named else {}
        return any(each.is_of(schema) for each in named)

    def labels(self, key: Key) -> dict[str, str]:  # noqa: ARG002
        return {}

    def settle(self, obj: Object, live: Object | None) -> None:
        """Nothing is written here."""

    def follow(self, change: Change) -> bool:
        if (change.key.resource, change.key.cluster) != (BINDINGS, self._home):
            return True
        return bound_in(change.previous, self._home) == bound_in(change.value, self._home)


def bound_in(value: bytes | None, home: str) -> Bound:
    """The schemas that an APIBinding of a logical cluster is bound with; none where it is not there."""
    found = recorded_by(orjson.loads(value)) if value is not None else frozenset()
    return frozenset(each if each.cluster else each._replace(cluster=home) for each in found)

"""What a provider sees of one resource, over its consumers: of those that are bound, or of what their claims select.

Made by provider.py for each request. Objects that are seen by a claim carry kcp's label for it, which is stored
nowhere. A watch keeps its sight and is told of each change of what it goes by, in the order of the log: what is revoked
ends it at once, and so does what is granted where there are objects already, since whoever watches has not seen these.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import orjson

from apiserver.model.errors import StatusError, forbidden, not_found
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.storagenames import BINDINGS
from apiserver.registry import sharing
from apiserver.registry.permissionclaims import (
    LABEL,
    REFLEXIVE,
    Claimed,
    ClaimGrant,
    asked_of,
    label_key,
    label_value,
)
from apiserver.registry.sharing import Consumer, SharedExport
from apiserver.storage.protocol import Change, Store

Object = dict[str, Any]


class SeenKind(NamedTuple):
    """Of which resource something is seen. `storage`: the store's name; `claimed`: what it is claimed as, None for one
    of the export's own; `verb`: what is done to it, which a claim may not allow; `alone`: the one logical cluster that
    is looked at, None for all."""

    resource: GroupResource
    storage: str
    claimed: Claimed | None
    verb: str
    alone: str | None

    @property
    def of_bindings(self) -> bool:
        return self.storage == BINDINGS

    @property
    def own(self) -> bool:
        return self.claimed is None and not self.of_bindings


_LOOK = 50
"""Objects of a workspace that are looked at to learn whether any is older than its binding."""


class ProviderSight:
    """`consumers`: by logical cluster name, sorted, as they were at the revision `since` or later; `seen`: what of."""

    def __init__(
        self, store: Store, export: SharedExport, consumers: dict[str, Consumer], seen: SeenKind, since: int
    ) -> None:
        self._store, self._export, self._consumers, self._seen = store, export, consumers, seen
        self.since = since
        self.at: int | None = None
        self._hint = f'"apiExportClusterName":"{export.cluster}"'.encode()
        self._label = label_key(export.cluster, export.name)
        self.token: Hashable = (export.cluster, export.name, seen)

    @property
    def clusters(self) -> Sequence[str] | None:
        """The export's own objects stand under names that nobody else's have."""
        return None if self._seen.own else list(self._consumers)

    def cluster_of(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def shows(self, key: Key, value: bytes) -> bool:
        if self._seen.of_bindings and sharing.is_bound(orjson.loads(value), self._export):
            return True
        consumer = self._consumers.get(key.cluster)
        if consumer is None:
            return False
        if self._seen.own:
            return self._seen.storage in consumer.bound
        grant = self._grant(consumer)
        return grant is not None and (not grant.picks or grant.selects(_labels(value)))

    def _grant(self, consumer: Consumer | None) -> ClaimGrant | None:
        claimed = self._seen.claimed
        grant = consumer.grants.get(claimed) if consumer is not None and claimed is not None else None
        return grant if grant is not None and grant.allows(self._seen.verb) else None

    def labels(self, key: Key) -> dict[str, str]:
        grant = self._grant(self._consumers.get(key.cluster))
        if grant is not None:
            return {self._label: label_value(grant.claimed)}
        return {self._label: REFLEXIVE} if self._seen.of_bindings else {}

    # -- writing

    def settle(self, obj: Object, live: Object | None) -> None:
        """A claimed object gets the labels that its consumer's selector asks for; none is changed out of it. What is
        said of claims by labels is told, and not written."""
        seen, name = self._seen, str(obj["metadata"].get("name") or "")
        labels = {k: v for k, v in (obj["metadata"].get("labels") or {}).items() if not k.startswith(LABEL)}
        grant = self._grant(self._consumers.get(seen.alone or ""))
        if grant is not None and live is None and not grant.allows("create"):
            raise self._forbidden(name, "the claim that is accepted here has not the verb create")
        if grant is not None and grant.picks:
            if live is not None and not grant.selects(live["metadata"].get("labels") or {}):
                raise not_found(seen.resource.resource, seen.resource.group, name)
            for key, value in grant.labels.items():
                if labels.setdefault(key, value) != value:
                    raise self._forbidden(name, f"protected label {key} must have value {value}")
            if not grant.selects(labels):
                raise self._forbidden(name, "object does not match required labels")
        if labels:
            obj["metadata"]["labels"] = labels
        elif obj["metadata"].get("labels"):
            del obj["metadata"]["labels"]

    def _forbidden(self, name: str, why: str) -> StatusError:
        group, resource = self._seen.resource
        return forbidden(resource, group, name, why)

    # -- watching

    def follow(self, change: Change) -> bool:
        if change.key == self._export.key:
            return self._follow_export(change)
        cluster = change.key.cluster
        if change.key.resource != BINDINGS or self._seen.alone not in (None, cluster):
            return True
        if not any(self._hint in value for value in (change.previous, change.value) if value is not None):
            return True
        before, after = (self._by_binding(value) for value in (change.previous, change.value))
        if before is None and after is None:
            return True
        now = sharing.consumer(self._store, self._export, cluster)
        if now is None:
            self._consumers.pop(cluster, None)
        else:
            self._consumers[cluster] = now
        if self._part(before) == self._part(after):
            return True
        return self._part(before) is None and not self._has_older(change)

    def _follow_export(self, change: Change) -> bool:
        """Another claim, or other resources; the export's other fields change nothing of what is seen."""
        if change.value is None:
            return False
        old, self._export = (
            self._export,
            SharedExport(self._export.cluster, orjson.loads(change.value), change.revision),
        )
        if (old.identity, old.storages()) != (self._export.identity, self._export.storages()):
            return False
        claims = ([c for c in asked_of(e.obj) if Claimed.of(c) == self._seen.claimed] for e in (old, self._export))
        return next(claims) == next(claims)

    def _by_binding(self, value: bytes | None) -> Consumer | None:
        """What one binding makes of its workspace."""
        return sharing.consumer_by(self._export, [orjson.loads(value)]) if value is not None else None

    def _part(self, consumer: Consumer | None) -> object:
        """What of a consumer decides about this resource; None where nothing of it is seen. Bindings themselves are
        told one by one."""
        if self._seen.own:
            return True if consumer is not None and self._seen.storage in consumer.bound else None
        return self._grant(consumer)

    def _has_older(self, change: Change) -> bool:
        page = self._store.scan(self._seen.storage, change.key.cluster, limit=_LOOK, count=False)
        return page.more is not None or any(record.revision < change.revision for record in page.records)


def _labels(value: bytes) -> dict[str, str]:
    found: dict[str, str] = orjson.loads(value)["metadata"].get("labels") or {}
    return found

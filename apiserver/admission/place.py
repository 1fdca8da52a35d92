"""Where an object is to be made: what admission looks at to complete it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.storage.protocol import Store

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """`namespace` "" for objects without one."""

    store: Store
    cluster: str
    namespace: str = ""

    def get(self, resource: str, name: str) -> Object | None:
        """A cluster-scoped object, by its store name."""
        found = self.store.get(Key(resource, self.cluster, "", name))
        return orjson.loads(found.value) if found else None

    def marked(self, resource: str, mark: bytes) -> Iterator[Object]:
        """The cluster-scoped objects whose bytes contain `mark`."""
        for record in self.store.scan(resource, self.cluster).records:
            if mark in record.value:
                yield orjson.loads(record.value)


def name_of(obj: Object) -> str:
    """Of one that is not checked yet."""
    metadata = obj.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def spec_of(obj: Object) -> Object:
    """The spec of an object that is not checked yet, made if there is none; what is no object is left to the checks."""
    found = obj.setdefault("spec", {})
    return found if isinstance(found, dict) else {}

"""The objects of a resource in one workspace, where all of them are to go before what brought the resource does.

Used by definitionlife and bindinglife.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from apiserver.model.keys import Key
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Record, Store
from reconciler.controllers import disposal

_PAGE = 500


@dataclass(slots=True)
class Left:
    """What is there still. `declared`: texts that name objects which stay for the sake of a file, and the file.
    `finalizers`: how many objects wait for each."""

    count: int = 0
    declared: list[str] = field(default_factory=list)
    finalizers: Counter[str] = field(default_factory=Counter)


def pages(store: Store, resource: str, cluster: str) -> Iterator[list[Record]]:
    """`resource`: as in keys of the store."""
    after: Key | None = None
    while True:
        page = store.scan(resource, cluster, after=after, limit=_PAGE)
        if page.records:
            yield page.records
        if page.more is None:
            return
        after = page.more


def end(store: Store, kind: ServedKind, cluster: str, left: Left) -> None:
    """Deletes what can be deleted of a kind, and adds to `left` what is there after that."""
    for records in pages(store, kind.storage, cluster):
        disposal.delete_all(store, kind, records)
    for records in pages(store, kind.storage, cluster):
        left.count += len(records)
        for record in records:
            path = disposal.declared(store, record.value)
            if path:
                left.declared.append(f'{kind.qualified} "{record.key.name}" is declared in {path}')
            left.finalizers.update(orjson.loads(record.value)["metadata"].get("finalizers") or ())

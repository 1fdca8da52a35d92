"""DELETE of a collection: what the selectors match, and the answer."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.endpoints.asking import Asking
from apiserver.endpoints.listing import matches
from apiserver.endpoints.selection import Selection
from apiserver.endpoints.sight import ScanPart
from apiserver.model.keys import Key
from apiserver.registry.served import ServedKind


def matching(asking: Asking) -> list[Key]:
    """Raises StatusError 400 for selectors that cannot be read."""
    exchange, view = asking.exchange, asking.view
    selection = Selection(asking.kind, exchange.parameter("labelSelector"), exchange.parameter("fieldSelector"))
    page = asking.scan(ScanPart(asking.namespace))
    view.prepare(record.value for record in page.records)
    return [r.key for r in page.records if matches(selection, view, r)]


def as_list(kind: ServedKind, objects: list[dict[str, Any]], revision: int) -> bytes:
    items = objects if kind.custom else [
        {k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in objects
    ]  # fmt: skip
    return orjson.dumps(
        {
            "kind": kind.list_kind,
            "apiVersion": kind.api_version,
            "metadata": {"resourceVersion": str(revision)},
            "items": items,
        }
    )

"""Which Partitions a PartitionSet has: one for each combination of values that Shards have of its dimensions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.model.identity import base36_sha224
from apiserver.model.selectors import from_object

Object = dict[str, Any]

_STRANGE = re.compile(r"[^a-z0-9]+")
_READABLE, _HASH = 40, 8
"""How much of a name is for people, and how much tells apart what reads alike."""


def partitions(partition_set: Object, shards: Iterable[Object]) -> dict[str, Object]:
    """Their specs by name. A Shard without one of the labels is in none."""
    spec = partition_set["spec"]
    said = spec.get("shardSelector")
    selector = from_object(said) if said is not None else None
    dimensions = sorted(set(spec.get("dimensions") or ()))
    divided = sorted({*dimensions, *((said or {}).get("matchLabels") or {})})
    also = {"matchExpressions": said["matchExpressions"]} if (said or {}).get("matchExpressions") else {}
    found: dict[str, Object] = {}
    for shard in shards:
        labels: Mapping[str, str] = shard["metadata"].get("labels") or {}
        if divided and labels.keys() >= set(divided) and (selector is None or selector.matches(labels)):
            chosen = {key: labels[key] for key in divided}
            name = _name(partition_set["metadata"]["name"], chosen, dimensions)
            found[name] = {"selector": {"matchLabels": chosen, **also}}
    return found


def _name(of: str, chosen: Mapping[str, str], dimensions: Iterable[str]) -> str:
    """The same for the same values."""
    readable = "-".join(_STRANGE.sub("-", chosen[key].lower()).strip("-") for key in dimensions)[:_READABLE].strip("-")
    exact = base36_sha224("+".join(f"{key}={value}" for key, value in chosen.items()), _HASH)
    return "-".join(part for part in (of, readable, exact) if part)

"""What a printer is, and cells that several need."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from apiserver.model import clock
from apiserver.registry.served import Column

Object = dict[str, Any]
Cells = Callable[[Object], list[Any]]

NAME = Column("Name", format="name", description="The name of the object, unique among those of its kind.")
AGE = Column("Age", description="How long ago the object was created.")
CREATED = Column("Created At", "date", description="When the object was created.")


class Printer(NamedTuple):
    """`cells` gives one value for each of `columns`, the name included."""

    columns: tuple[Column, ...]
    cells: Cells


def columns(*wanted: Column | str) -> tuple[Column, ...]:
    """A string is a column by name: `Ready`; `Data:integer` is one of integers, `*Images` is for -o wide only."""
    return tuple(_column(c) if isinstance(c, str) else c for c in wanted)


def _column(text: str) -> Column:
    name, _, kind = text.lstrip("*").partition(":")
    return Column(name, kind or "string", priority=int(text.startswith("*")))


def duration(seconds: float) -> str:
    """As kubectl prints spans of time: 45s, 5m12s, 42m, 3h15m, 20h, 2d5h, 45d, 2y30d, 9y."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return _pair(minutes, "m", total % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def since(timestamp: object) -> str:
    """How long ago an RFC 3339 time was."""
    return _since(timestamp, int(time.time())) if isinstance(timestamp, str) and _is_short(timestamp) else "<unknown>"


@lru_cache(4096)
def _since(timestamp: str, now: int) -> str:
    """Objects of a list were often created within the same second."""
    at = _seconds(timestamp)
    return "<unknown>" if at is None else duration(now - at)


def _is_short(timestamp: str) -> bool:
    """No time is longer: what would be remembered of one is not worth it."""
    return len(timestamp) <= 128


def between(start: object, end: object) -> str:
    """From one RFC 3339 time to another."""
    if not isinstance(start, str) or not isinstance(end, str) or not _is_short(start + end):
        return "<unknown>"
    begin, finish = _seconds(start), _seconds(end)
    return "<unknown>" if begin is None or finish is None else duration(finish - begin)


@lru_cache(4096)
def _seconds(timestamp: str) -> float | None:
    """Since 1970."""
    try:
        return clock.parse(timestamp).timestamp()
    except ValueError:
        return None


def age(obj: Object) -> str:
    return since(obj["metadata"].get("creationTimestamp"))


def name(obj: Object) -> str:
    found: str = obj["metadata"].get("name", "")
    return found


def at(obj: Object, *path: str, default: Any = None) -> Any:
    """The value under nested keys, `default` where one is missing or null."""
    value: Any = obj
    for key in path:
        if not isinstance(value, dict):
            return default
        value = value.get(key)
    return default if value is None else value


def joined(values: list[Any] | None, *, none: str = "<none>", most: int = 0) -> str:
    """Comma-separated; with `most`, the rest is counted: `a,b,c + 2 more...`."""
    texts = [str(v) for v in values or ()]
    if most and len(texts) > most:
        return f"{','.join(texts[:most])} + {len(texts) - most} more..."
    return ",".join(texts) or none


def selector(found: dict[str, Any] | None) -> str:
    """A label selector as kubectl shows it."""
    if found is None:
        return "<none>"
    plain = found if "matchLabels" not in found and "matchExpressions" not in found else found.get("matchLabels") or {}
    parts = [f"{k}={v}" for k, v in sorted(plain.items())]
    for e in found.get("matchExpressions") or () if plain is not found else ():
        values = ",".join(sorted(e.get("values") or ()))
        key = e.get("key", "")
        operators = {"DoesNotExist": f"!{key}", "In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})"}
        parts.append(operators.get(e.get("operator", ""), key))
    return ",".join(parts) or "<none>"


SIMPLE = Printer(columns(NAME, AGE), lambda obj: [name(obj), age(obj)])
"""Of kinds without columns of their own."""

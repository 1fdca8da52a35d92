"""How deeply values may be nested: readers refuse more, so that nothing behind them has to mind.

Whatever walks a value calls itself for each level, and the JSON encoder ends at 254. What the server adds around an
object (an item of a list, a row, an event) and to it (field ownership) is a few levels more.
"""

from __future__ import annotations

from typing import Any

DEPTH = 200
"""Levels of nesting."""


def too_deep(value: Any, most: int = DEPTH) -> bool:
    """Whether a JSON value has more levels of objects and lists than `most`. It survives any value: it goes level by
    level."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True

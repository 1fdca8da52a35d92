"""Reads the committed data, once per process, when first asked; a few milliseconds."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson

_HERE = Path(__file__).parent


@cache
def kubernetes() -> dict[str, Any]:
    """`{version, resources: [...], definitions: {name: schema}}`; references are `#/components/schemas/<name>`."""
    found: dict[str, Any] = orjson.loads((_HERE / "kubernetes.json").read_bytes())
    return found


@cache
def treeplane() -> list[dict[str, Any]]:
    """Our own kinds as CustomResourceDefinitions."""
    found: list[dict[str, Any]] = orjson.loads((_HERE / "treeplane.json").read_bytes())
    return found

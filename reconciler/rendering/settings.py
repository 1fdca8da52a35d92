"""How renderers are run here. Made by whoever wires a renderer (commands/rendering), read by this room."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

_MIB = 1024 * 1024


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class RenderingBounds:
    """How much one rendering may take."""

    seconds: float = 30.0
    """From its start to its end."""
    memory: int = 2048 * _MIB
    """Bytes of memory of its own."""
    output: int = 3 * _MIB
    """Bytes that it may print."""
    files: int = 10_000
    """That it may be shown."""
    content: int = 64 * _MIB
    """Bytes of all these."""


@dataclass(frozen=True, slots=True)
class RenderingSettings:
    """Of a renderer."""

    cache: Path
    """Where outputs are kept, and files while they are rendered. Made where it is missing; several processes may share
    it."""
    kubectl: Path | None = None
    """The program that has kustomize; None: the one that PATH finds."""
    helm: Path | None = None
    """The program that renders charts; None: the one that PATH finds."""
    kube_version: str = "v1.36.0"
    """Which Kubernetes charts are told that they are for."""
    api_versions: tuple[str, ...] = ()
    """Which APIs charts are told that there are, besides those that helm itself knows: `group/version` and
    `group/version/Kind`."""
    cache_bytes: int = 256 * _MIB
    """What is kept on disk; what was used least lately goes first."""
    memory_bytes: int = 16 * _MIB
    """What is kept in memory of it."""
    at_once: int = field(default_factory=cores)
    """How many programs run at a time."""
    bounds: RenderingBounds = field(default=RenderingBounds())
    """Of each of them."""

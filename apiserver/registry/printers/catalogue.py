"""Which printer shows which kind."""

from __future__ import annotations

from apiserver.registry.printers.base import SIMPLE, Printer

PRINTERS: dict[str, Printer] = {}
"""By qualified resource (`deployments.apps`)."""


def printer_of(qualified: str) -> Printer:
    """Of one of Kubernetes' own kinds."""
    return PRINTERS.get(qualified, SIMPLE)

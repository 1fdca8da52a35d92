"""Which printer shows which of Kubernetes' own kinds."""

from __future__ import annotations

from apiserver.registry.printers import capacity, control, core, networking, workloads
from apiserver.registry.printers.base import SIMPLE, Printer

_PRINTERS: dict[str, Printer] = {
    **capacity.PRINTERS,
    **control.PRINTERS,
    **core.PRINTERS,
    **networking.PRINTERS,
    **workloads.PRINTERS,
}


def printer_of(qualified: str) -> Printer:
    """By qualified resource (`deployments.apps`)."""
    return _PRINTERS.get(qualified, SIMPLE)

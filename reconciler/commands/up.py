"""`treeplane up`: serve and reconcile until Ctrl-C.

Starts the reconciler's process first of all, and loads what does the rest (running) while that loads its own.
"""

from __future__ import annotations

from reconciler.commands.ahead import ReconcilerAhead
from reconciler.commands.journal import journal
from reconciler.commands.settings import UpSettings


def up(settings: UpSettings) -> None:
    """Returns after a clean stop; raises Failure."""
    with journal(settings.logging) as outlets, ReconcilerAhead(outlets) as ahead:
        from reconciler.commands.running import run  # noqa: PLC0415 - while the reconciler's process loads its modules

        run(settings, outlets, ahead)

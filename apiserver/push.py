"""The bell that a push to the hosted repository rings, so that the reconciler looks at once.

`notify_push` is called by the git endpoint of any API worker, `listen_push` by the reconciler. A bell lost is harmless:
the reconciler also watches the refs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from apiserver import bell

NAME = "push.sock"


def notify_push(data_dir: Path) -> None:
    """Ring. Without a listener nothing happens."""
    bell.ring(data_dir, NAME, b"push")


def listen_push(data_dir: Path, callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` (in a thread of its own) after each push; several close together may ring once.

    Returns what ends it. Raises OSError where the socket cannot be made.
    """
    return bell.listen(data_dir, NAME, lambda _: callback())

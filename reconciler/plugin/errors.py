"""How a plugin ends where it cannot do what it was asked for, and with which exit code: 1 for what is not ready, 2 for
what cannot be asked so, 3 for anything else."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.plugin.saying import warn

NOT_READY, USAGE, BROKEN = 1, 2, 3


class PluginError(Exception):
    """What the user reads after `Error: `."""

    def __init__(self, text: str, code: int = BROKEN) -> None:
        super().__init__(text)
        self.code = code


class MissingWorkspace(PluginError):
    """There is none at that path, or none that is shown to this user."""


def ended(run: Callable[[], None]) -> int:
    """The exit code of a program that does `run`; what went wrong is told."""
    try:
        run()
    except PluginError as error:
        warn(f"Error: {error}")
        return error.code
    except BrokenPipeError:
        return BROKEN
    except KeyboardInterrupt:
        return 130
    return 0

"""How a plugin ends where it cannot do what it was asked for."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.plugin.saying import warn


class PluginError(Exception):
    """What the user reads after `Error: `."""


def ended(run: Callable[[], None]) -> int:
    """The exit code of a program that does `run`; what went wrong is told."""
    try:
        run()
    except PluginError as error:
        warn(f"Error: {error}")
        return 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
    return 0

"""The option `--path` of commands that read a repository: in which folder of it the fleet stands. See line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from reconciler.commands.forms import FORMS


def folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the argument `folder`, "" where none is named."""
    said = "The folder of the repository in which the fleet stands  [default: the one around here, or the only one]"
    return click.option("--path", "folder", default="", metavar="FOLDER", callback=_read, help=said)(command)


def _read(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    try:
        found: str = FORMS["folder"].read(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return found

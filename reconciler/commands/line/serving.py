"""`treeplane up`, and the processes that it starts. See line."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from reconciler.commands import options
from reconciler.commands.children import MODULE
from reconciler.commands.roles import parse
from reconciler.commands.settings import UpSettings
from reconciler.commands.up import up as up_command


@click.command()
@options.options(UpSettings)
def up(**given: Any) -> None:
    """Serve and reconcile REPOSITORY: a git repository, a URL, or a directory of manifests."""
    up_command(options.settings(UpSettings, given))


@click.command(hidden=True)
@click.option("--roles", default="all", help="Of this process: all, loading, or controllers,status,syncing.")
def reconcile(roles: str) -> None:
    """One reconciler's process, as `up` starts them: with what it has to know in a line on standard input."""
    try:
        parse(roles)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if os.isatty(0):
        raise click.UsageError("nobody says what to reconcile: `treeplane up` starts this, see --roles")
    os.execv(sys.executable, [sys.executable, "-m", MODULE, roles])  # noqa: S606

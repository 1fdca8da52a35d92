"""`treeplane kcp start`. See line."""

from __future__ import annotations

from typing import Any

import click

from reconciler.commands import options
from reconciler.commands.kcp import start as start_kcp
from reconciler.commands.kcpsettings import KcpSettings


@click.group()
def kcp() -> None:
    """For those who know kcp."""


@kcp.command(context_settings={"ignore_unknown_options": True})
@options.options(KcpSettings)
@click.argument("others", nargs=-1, type=click.UNPROCESSED, metavar="")
def start(others: tuple[str, ...], **given: Any) -> None:
    """Serve workspaces as `kcp start` does: what is written through the API goes to the store. Flags of kcp that are
    not listed are taken, and ignored."""
    start_kcp(options.settings(KcpSettings, given), others)

"""`treeplane pushes`. See line."""

from __future__ import annotations

import time
from pathlib import Path

import click

from reconciler.commands.failure import Failure
from reconciler.commands.line.durations import seconds_of
from reconciler.commands.pushlisting import pushes as listed
from reconciler.commands.statuswords import FORMS


def _since(_ctx: click.Context, _option: click.Parameter, text: str) -> float:
    """Seconds since 1970."""
    if not text:
        return 0.0
    seconds = seconds_of(text)
    if seconds is None:
        raise click.BadParameter(f"{text!r} says no duration like 90m, 12h, 7d")
    return time.time() - seconds


@click.command()
@click.option(
    "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".treeplane",
    show_default=True, help="The server's.",
)  # fmt: skip
@click.option("--user", default="", help="Only what this user pushed, or wanted to.")
@click.option("--since", default="", metavar="DURATION", callback=_since, help="Only of the last 90m, 12h, 7d.")
@click.option("--max", "most", type=click.IntRange(0), default=100, show_default=True, help="Pushes; 0 for all.")
@click.option("--output", "-o", type=click.Choice(FORMS), default="table", show_default=True, help="The form.")
def pushes(data_dir: Path, user: str, since: float, most: int, output: str) -> None:
    """Print who pushed what to the repository that a server hosts, from where, when and with what result.

    The newest first. It reads files on the server's machine, and needs no server.
    """
    try:
        found = listed(data_dir, user, since, most)
    except OSError as error:
        raise Failure(
            f"the log of pushes cannot be read: {error}", "run this as the user that runs the server"
        ) from None
    click.echo(found.told(output), nl=False)

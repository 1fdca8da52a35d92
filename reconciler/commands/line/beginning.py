"""`treeplane init` and `treeplane ws`. See line."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.commands.initialize import initialize
from reconciler.plugin import ws as plugin


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def init(directory: Path) -> None:
    """Write a small fleet to begin with into DIRECTORY."""
    for line in initialize(directory):
        click.echo(line)


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def ws(arguments: tuple[str, ...]) -> None:
    """Go from workspace to workspace, and make some: what `kubectl ws` does; `create` also as files."""
    if arguments[:1] == ("create",):
        # Only this reads and writes files of a fleet: everything else of `ws` starts at once.
        from reconciler.commands.wscreate import create_workspace  # noqa: PLC0415

        create_workspace(list(arguments[1:]))
        return
    raise SystemExit(plugin.run(list(arguments), "treeplane ws"))

"""`treeplane mv`. See line."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.commands.line.output import output as output_option
from reconciler.commands.mv import move


@click.command()
@click.argument("old", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--dry-run", "dry", is_flag=True, help="Move nothing; with -o yaml or json, show its workspace.yaml as it would be."
)
@output_option()
def mv(old: Path, new: Path, dry: bool, output: str) -> None:
    """Move the workspace in directory OLD of a clone to directory NEW: it stays the same, with all that is in it."""
    click.echo(move(old, new, dry=dry).render(output), nl=False)

"""`treeplane diff`. See line."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from reconciler.commands.diff import compare, exit_code
from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.review.telling import FORMS

_GARBAGE = 100_000
"""Objects between two looks for garbage: this process ends soon, and looking would be a fifteenth of it."""


@click.command()
@click.argument("range_", metavar="[A..B | A...B]", required=False, default="")
@click.option(
    "-C", "directory", type=click.Path(path_type=Path, exists=True, file_okay=False), help="The clone  [default: here]"
)
@folder_option
@output_option(FORMS)
def diff(range_: str, directory: Path | None, folder: str, output: str) -> None:
    """Print what B does to A: to workspaces, their objects and fields, and to sync targets. A...B is what merging B
    into A does; with neither, what merging the files of the clone into what is served does.

    Exit 0 where nothing would be another, 1 where something would, 3 where something of it would be held.
    """
    gc.set_threshold(_GARBAGE)
    found = compare(directory or Path(), range_, folder)
    click.echo(FORMS[output](found), nl=False)
    raise SystemExit(exit_code(found))

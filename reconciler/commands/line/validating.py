"""`treeplane validate`. See line."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.commands.validate import Checked, validate_path, validate_revision


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rev", help="A commit, branch or tag of the repository at PATH instead of its files.")
@click.option(
    "--base", help="With --rev: tell what it deletes of this one  [default: what the status branch says is served]"
)
@click.option("--workspace", "-w", default="", help="Judge root:shop:web, say, and what is below it, and nobody else.")
@folder_option
@output_option()
def validate(path: Path | None, rev: str | None, base: str | None, workspace: str, folder: str, output: str) -> None:
    """Print every error in PATH (default: here), and what waits for what is not there; exit 1 for an error."""
    if base and not rev:
        raise click.UsageError("--base needs --rev")
    at = path or Path()
    found = validate_revision(at, rev, base or "", workspace, folder) if rev else validate_path(at, workspace, folder)
    checked: Checked = found
    click.echo(checked.render(output), nl=False)
    raise SystemExit(1 if checked.problems else 0)

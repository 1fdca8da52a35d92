"""`treeplane restore`. See line."""

from __future__ import annotations

import click

from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.commands.restore import RestoreAsked
from reconciler.commands.restore import restore as put_back
from reconciler.plan.deletions import is_digest


def _hashes(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    wrong = next((text for text in given if not is_digest(text)), None)
    if wrong is not None:
        raise click.BadParameter(f"{wrong} is not the hash of a deletion, which has 40 digits")
    return given


@click.command()
@click.argument("path")
@click.option("--at", "revision", required=True, metavar="REV", help="The commit, branch or tag to go back to.")
@click.option("--dry-run", "dry", is_flag=True, help="Say what it would do, and commit nothing.")
@click.option(
    "--allow-delete",
    "allowed",
    multiple=True,
    metavar="HASH",
    callback=_hashes,
    help="Commit it although it deletes what has to be allowed: the hash that is printed then.",
)
@click.option("--predecessor", is_flag=True, help="Also where another workspace was at PATH in REV.")
@folder_option
@output_option()
def restore(
    path: str, revision: str, dry: bool, allowed: tuple[str, ...], predecessor: bool, folder: str, output: str
) -> None:
    """Commit the own files of the workspace in directory PATH as commit REV has them: in this clone, on its branch. One
    that moved gets them where it is, one that is gone comes back.

    Exit 1 where it cannot be, and with --dry-run where something would change; 3 where something of it would be held,
    and then nothing is committed.
    """
    done = put_back(RestoreAsked(path, revision, predecessor, allowed, dry, folder))
    click.echo(done.render(output), nl=False)
    raise SystemExit(done.exit_code)

"""`treeplane log`, `treeplane blame` and `treeplane trace`. See line."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import click

from reconciler.commands import history
from reconciler.commands.history import HistoryAsked
from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.history.telling import FORMS

_GARBAGE = 100_000
"""Objects between two looks for garbage: this process ends soon."""
_DIRECTORY = click.Path(path_type=Path, exists=True, file_okay=False)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        output_option(FORMS),
        folder_option,
        click.option("-C", "directory", type=_DIRECTORY, help="Be in this directory of the clone  [default: here]"),
        click.option(
            "--keys",
            type=_DIRECTORY,
            metavar="DIR",
            help="A server's keys/, or what you have of it: commits.pub tells what the server signed, signers/ who may "
            "sign where a commit names nobody.",
        ),
        click.option("--workspace", "-w", default="", help="root:shop:web, or its directory."),
        click.option("--namespace", "-n", default="", help="Of the object, or of all that is told."),
    ):
        command = option(command)
    return command


def _asked(words: tuple[str, ...], options: dict[str, Any]) -> HistoryAsked:
    gc.set_threshold(_GARBAGE)
    where = options["directory"] or Path()
    return HistoryAsked(where, words, options["namespace"], options["workspace"], options["keys"], options["folder"])


@click.command()
@click.argument("words", metavar="[PATH] [KIND[/NAME]] [REV | A..B]", nargs=-1)
@click.option("--max", "most", type=click.IntRange(0), default=100, show_default=True, help="Commits; 0 for all.")
@_options
def log(words: tuple[str, ...], most: int, output: str, **options: Any) -> None:
    """Print the commits that changed a workspace: who made, signed and pushed each, and what it did to objects.

    PATH is the workspace's path or directory; without one, it is the workspace in whose directory you are, or all of
    them. REV is a commit, branch or tag; without one, what is served.
    """
    click.echo(FORMS[output](history.log(_asked(words, options), most)), nl=False)


@click.command()
@click.argument("words", metavar="KIND/NAME [REV]", nargs=-1, required=True)
@_options
def blame(words: tuple[str, ...], output: str, **options: Any) -> None:
    """Print each field of an object, as it is declared, with the commit and the line that last set it."""
    click.echo(FORMS[output](history.blame(_asked(words, options))), nl=False)


@click.command()
@click.argument("words", metavar="[KIND/NAME]", nargs=-1)
@click.option("--target", default="", help="The sync target that it is on: root:infra:eu-west, or eu-west.")
@click.option("-f", "file", type=click.File("rb"), help="The object as it stands on a cluster; - for standard input.")
@_options
def trace(words: tuple[str, ...], target: str, file: IO[bytes] | None, output: str, **options: Any) -> None:
    """Print of an object on a cluster which file, line and commit declare it, by which Placement it is there, and since
    when. Given by -f, it is compared with its file: exit 1 where it says something else, or is not from here.
    """
    asked = _asked(words, options)
    if bool(words) == (file is not None) or (words and not target):
        raise click.UsageError("give KIND/NAME and --target, or an object by -f")
    found = history.trace_copies(asked, file.read()) if file is not None else history.trace(asked, target)
    click.echo(FORMS[output](found), nl=False)
    raise SystemExit(1 if any(each.differs for each in found) else 0)

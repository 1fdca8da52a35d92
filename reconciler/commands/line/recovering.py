"""`treeplane drill`. See line."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from reconciler.commands.drill import drill as run_drill
from reconciler.commands.drill import exit_code
from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.drilling.telling import FORMS

_GARBAGE = 100_000
"""Objects between two looks for garbage: this process ends soon."""


@click.command()
@click.argument("source", required=False, default="")
@click.option("--branch", default="main", show_default=True, help="The branch that is served.")
@click.option(
    "--keys",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The keys/ of the server, or a backup of them: they are read, and nothing in them is printed.",
)
@folder_option
@output_option(FORMS)
def drill(source: str, branch: str, keys: Path | None, folder: str, output: str) -> None:
    """Clone SOURCE, recover the fleet from it into a store that is thrown away, and say whether that gives what is
    recorded. SOURCE: a URL, a repository or a data directory  [default: the clone around here]

    Prints how long a recovery takes, up to where it comes, and what no repository brings back. Exit 1 where something
    comes back otherwise, 3 where nothing can be recovered, 4 where SOURCE does not answer. No server, cluster or
    webhook is asked, and nothing is written to SOURCE.
    """
    gc.set_threshold(_GARBAGE)
    found = run_drill(source, branch, keys, folder)
    click.echo(FORMS[output](found), nl=False)
    raise SystemExit(exit_code(found))

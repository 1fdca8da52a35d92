"""`treeplane init`, `treeplane ws` and `treeplane kubeconfig`. See line."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.commands.initialize import initialize
from reconciler.plugin import completing
from reconciler.plugin import ws as plugin
from reconciler.plugin.errors import ended
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.saying import FORMS, say, tell
from reconciler.plugin.session import Session


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), required=False, default=".")
@click.option("--output", "-o", type=click.Choice(FORMS), default="table", show_default=True, help="The form.")
def init(directory: Path, output: str) -> None:
    """Write a small fleet to begin with into DIRECTORY (default: here), and print what to type next. It asks nothing,
    and a file that is there stays as it is."""
    done = initialize(directory)
    if output == "table":
        say("\n".join(done.lines()))
    else:
        tell(done.data(), output)


def _words(context: click.Context, _argument: click.Parameter, last: str) -> list[str]:
    return completing.candidates([*context.params.get("arguments", ()), *context.args], last)


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=_words)
def ws(arguments: tuple[str, ...]) -> None:
    """Go from workspace to workspace, and make some: what `kubectl ws` does."""
    raise SystemExit(plugin.run(list(arguments), "treeplane ws"))


@click.command()
@click.argument("path", default="")
@click.option("--at", "rev", default="", metavar="REV", help="A commit: an id, a branch, a tag, or pull/NUMBER.")
@click.option("--kubeconfig", default="", help="The file to read instead of $KUBECONFIG.")
def kubeconfig(path: str, rev: str, kubeconfig: str) -> None:
    """Print a kubeconfig for the workspace PATH (default: the current one), with --at as that commit has it.

    It names the commit by its id, so it means the same for ever, and the user that the current context names.
    """
    raise SystemExit(ended(lambda: _print_kubeconfig(path, rev, kubeconfig)))


def _print_kubeconfig(path: str, rev: str, file: str) -> None:
    files = KubeconfigFiles.load(file)
    session = Session(files, "")
    where = path or session.path()
    there = Session(files, session.commit(rev, where) if rev else "")
    name = f"{where}@{there.at[:10]}" if there.at else where
    click.echo(files.alone(name, there.url(there.look_up(where).path)), nl=False)

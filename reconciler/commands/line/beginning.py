"""`treeplane init` and `treeplane ws`. See line."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.commands.initialize import initialize
from reconciler.plugin import completing
from reconciler.plugin import ws as plugin
from reconciler.plugin.saying import FORMS, say, tell


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
    """Go from workspace to workspace, and make some: what `kubectl ws` does; `create` also as files."""
    if arguments[:1] == ("create",):
        # Only this reads and writes files of a fleet: everything else of `ws` starts at once.
        from reconciler.commands.wscreate import create_workspace  # noqa: PLC0415 - see above

        create_workspace(list(arguments[1:]))
        return
    raise SystemExit(plugin.run(list(arguments), "treeplane ws"))

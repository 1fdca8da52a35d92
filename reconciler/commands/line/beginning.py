"""`treeplane init` and `treeplane ws`. See line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.commands.initialize import Initialized, initialize
from reconciler.plugin import completing
from reconciler.plugin import ws as plugin
from reconciler.plugin.saying import FORMS, say, tell

if TYPE_CHECKING:
    from reconciler.commands.adopting.adoption import Adopted


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), required=False, default=".")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Make the fleet of what DIR holds: manifests, kustomizations, charts, a repository for Flux or Argo CD. DIR "
    "stays as it is; DIRECTORY is empty or new.",
)
@click.option("--dry-run", is_flag=True, help="With --from: print what would be written, and write nothing.")
@click.option("--output", "-o", type=click.Choice(FORMS), default="table", show_default=True, help="The form.")
def init(directory: Path, source: Path | None, dry_run: bool, output: str) -> None:
    """Write a small fleet to begin with into DIRECTORY (default: here), and print what to type next. It asks nothing,
    and a file that is there stays as it is."""
    if source is None and dry_run:
        raise click.UsageError("--dry-run needs --from")
    code = 0
    done: Initialized | Adopted
    if source is None:
        done = initialize(directory)
    else:
        from reconciler.commands.adopting.adoption import adopt  # noqa: PLC0415 - `ws`, which is here too, starts at once

        done = adopt(source, directory, dry=dry_run)
        code = done.code
    if output == "table":
        say("\n".join(done.lines()))
    else:
        tell(done.data(), output)
    if code:
        raise SystemExit(code)


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

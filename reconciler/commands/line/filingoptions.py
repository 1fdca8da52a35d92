"""The options of every command that writes files, and how it ends. See line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.commands.filing.asked import FilingAsked
from reconciler.commands.filing.desk import Desk, desk_for
from reconciler.commands.filing.telling import told
from reconciler.commands.line.folders import folder_option

_Command = TypeVar("_Command", bound=Callable[..., Any])
_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_OPTIONS = (
    click.option(
        "--clone", type=_DIRECTORY, metavar="DIR", help="A clone of the fleet  [default: the one around here]"
    ),
    click.option(
        "--data-dir",
        type=_DIRECTORY,
        metavar="DIR",
        help="On the server's machine: what it serves from  [default: $TREEPLANE_DATA_DIR or .treeplane]",
    ),
    click.option("--keys", type=_DIRECTORY, metavar="DIR", help="Its keys  [default: DATA-DIR/keys]"),
    folder_option,
    click.option("--dry-run", is_flag=True, help="Write nothing; with -o yaml or json, show each file as it would be."),
    click.option("--show-secrets", is_flag=True, help="With --dry-run: show the values of Secrets, too."),
    click.option("--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True),
)


@dataclass(frozen=True, slots=True)
class FilingTyped:
    """What was typed of these options."""

    asked: FilingAsked
    output: str
    secrets: bool

    def run(self, do: Callable[[Desk], Sequence[str]]) -> None:
        """Has `do` put files on a desk, which returns the commit's message; writes them, and tells what was done."""
        with desk_for(self.asked) as desk:
            message = do(desk)
            filed = desk.planned() if self.asked.dry else desk.file(message)
        click.echo(told(filed, self.output, secrets=self.secrets), nl=False)


def filing_options(command: _Command) -> _Command:
    """Gives a command these options, as its argument `filing`."""

    @wraps(command)
    def run(
        *args: Any,
        clone: Path | None,
        data_dir: Path | None,
        keys: Path | None,
        dry_run: bool,
        show_secrets: bool,
        folder: str,
        output: str,
        **given: Any,
    ) -> Any:
        if show_secrets and not dry_run:
            raise click.UsageError("--show-secrets goes with --dry-run: nothing else shows a file")
        asked = FilingAsked(clone, data_dir, keys, dry_run, folder)
        return command(*args, filing=FilingTyped(asked, output, show_secrets), **given)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run  # type: ignore[return-value]

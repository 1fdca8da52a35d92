"""`treeplane pin`, `treeplane suspend` and `treeplane resume`. See line."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

from apiserver.model import clock
from reconciler.commands.line.durations import seconds_of
from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.commands.pinning import PinAsked, PinDone
from reconciler.commands.pinning import pin as set_pin
from reconciler.commands.pinning import resume as take_out
from reconciler.commands.pinning import suspend as keep

_LONGEST = 200
"""Characters of a reason, as the schema of workspace.yaml has it."""


def _until(_context: click.Context, _option: click.Parameter, text: str) -> str:
    """RFC 3339, in UTC."""
    if not text:
        return ""
    at = time.time()
    try:
        lasts = seconds_of(text)
        ends = at + lasts if lasts is not None else clock.parse(text).timestamp()
        found = clock.rfc3339(ends)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text} is no time: give one like 2030-01-31T18:00:00Z, or 90m, 2h, 3d") from None
    if ends <= at:
        raise click.BadParameter(f"{text} is over")
    return found


def _reason(_context: click.Context, _option: click.Parameter, text: str) -> str:
    if len(text) > _LONGEST or not text.isprintable():
        raise click.BadParameter(f"it is one line of at most {_LONGEST} characters")
    return text


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--reason", default="", callback=_reason, help="Why, for whoever looks at the workspace."),
        click.option("--until", default="", callback=_until, help="When it ends by itself: a time, or 90m, 2h, 3d."),
    ):
        command = option(command)
    return command


_output = output_option()
_dry = click.option(
    "--dry-run", "dry", is_flag=True, help="Commit nothing; with -o yaml or json, show workspace.yaml as it would be."
)


def _tell(done: PinDone, output: str) -> None:
    click.echo(done.render(output), nl=False)


@click.command()
@click.argument("path")
@click.argument("rev")
@_options
@_dry
@folder_option
@_output
def pin(path: str, rev: str, output: str, **options: Any) -> None:
    """Have the workspace in directory PATH served as commit REV has it, whatever is pushed: a commit in this clone.

    Its children are served as ever. Exit 1 where REV is none that it can be served as.
    """
    _tell(set_pin(PinAsked(path, **options), rev), output)


@click.command()
@click.argument("path")
@_options
@_dry
@folder_option
@_output
def suspend(path: str, output: str, **options: Any) -> None:
    """Have the workspace in directory PATH stay what it is served with now: a pin to the commit that has that."""
    _tell(keep(PinAsked(path, **options)), output)


@click.command()
@click.argument("path")
@_dry
@folder_option
@_output
def resume(path: str, output: str, **options: Any) -> None:
    """Have the workspace in directory PATH follow the branch again, in the next commit of this clone."""
    _tell(take_out(PinAsked(path, **options)), output)

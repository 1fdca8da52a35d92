"""The command line: `treeplane up`, `validate`, `diff`, `init`, `ws`. Options and exit codes only; each command is a
module."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from reconciler.commands import options, sharing
from reconciler.commands.children import MODULE, SETTINGS
from reconciler.commands.comment import comment
from reconciler.commands.diff import compare, exit_code
from reconciler.commands.hook import judge_push
from reconciler.commands.initialize import initialize
from reconciler.commands.kcp import start as start_kcp
from reconciler.commands.kcpsettings import KcpSettings
from reconciler.commands.mv import move
from reconciler.commands.roles import parse
from reconciler.commands.settings import UpSettings
from reconciler.commands.up import up as up_command
from reconciler.commands.validate import Checked, validate_path, validate_revision
from reconciler.plugin import ws as plugin
from reconciler.review.telling import FORMS


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="treeplane")
def main() -> None:
    """A Kubernetes control plane whose database is a git repository."""


@main.command()
@options.options(UpSettings)
def up(**given: Any) -> None:
    """Serve and reconcile REPOSITORY: a git repository, a URL, or a directory of manifests."""
    up_command(options.settings(UpSettings, given))


@main.command(hidden=True)
@click.option("--roles", default="all", help="Of this process: all, loading, or controllers,status,syncing.")
def reconcile(roles: str) -> None:
    """One reconciler's process, as `up` starts them: with what it has to know in TREEPLANE_RECONCILE."""
    try:
        parse(roles)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if SETTINGS not in os.environ:
        raise click.UsageError(f"{SETTINGS} says nothing of what to reconcile: `treeplane up` starts this, see --roles")
    os.execv(sys.executable, [sys.executable, "-m", MODULE, roles])  # noqa: S606


@main.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rev", help="A commit, branch or tag of the repository at PATH instead of its files.")
@click.option(
    "--base", help="With --rev: tell what it deletes of this one  [default: what the status branch says is served]"
)
@click.option("--workspace", "-w", default="", help="Judge root:shop:web, say, and what is below it, and nobody else.")
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def validate(path: Path | None, rev: str | None, base: str | None, workspace: str, output: str) -> None:
    """Print every error in PATH (default: here); exit 1 if there is one."""
    if base and not rev:
        raise click.UsageError("--base needs --rev")
    at = path or Path()
    checked: Checked = validate_revision(at, rev, base or "", workspace) if rev else validate_path(at, workspace)
    click.echo(checked.render(output), nl=False)
    raise SystemExit(1 if checked.problems else 0)


@main.command()
@click.argument("range_", metavar="[A..B | A...B]", required=False, default="")
@click.option(
    "-C", "directory", type=click.Path(path_type=Path, exists=True, file_okay=False), help="The clone  [default: here]"
)
@click.option("--output", "-o", type=click.Choice([*FORMS]), default="text", show_default=True)
def diff(range_: str, directory: Path | None, output: str) -> None:
    """Print what B does to A: to workspaces, their objects and fields, and to sync targets. A...B is what merging B
    into A does; with neither, what merging the files of the clone into what is served does.

    Exit 0 where nothing would be another, 1 where something would, 3 where something of it would be held.
    """
    found = compare(directory or Path(), range_)
    click.echo(FORMS[output](found), nl=False)
    raise SystemExit(exit_code(found))


@main.command()
@click.argument("old", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("new", type=click.Path(path_type=Path))
def mv(old: Path, new: Path) -> None:
    """Move the workspace in directory OLD of a clone to directory NEW: it stays the same, with all that is in it."""
    click.echo(move(old, new))


@main.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def init(directory: Path) -> None:
    """Write a small fleet to begin with into DIRECTORY."""
    for line in initialize(directory):
        click.echo(line)


@main.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def ws(arguments: tuple[str, ...]) -> None:
    """Go from workspace to workspace, and make some: what `kubectl ws` does."""
    raise SystemExit(plugin.run(list(arguments), "treeplane ws"))


@main.group()
def hook() -> None:
    """Hooks for the git server that a fleet is pushed to, where Treeplane does not host it."""


@hook.command("pre-receive")
def pre_receive() -> None:
    """Say what a push changes and whom it holds; exit 1, so that it is refused, where it would newly hold a workspace
    and the served treeplane.yaml says `spec.push: Refuse`. Run by git in the repository."""
    answer = judge_push(os.environ, sys.stdin)
    for line in answer.lines:
        click.echo(f"treeplane: {line}", err=True)
    raise SystemExit(1 if answer.refuses else 0)


@main.group()
def kcp() -> None:
    """For those who know kcp."""


@kcp.command(context_settings={"ignore_unknown_options": True})
@options.options(KcpSettings)
@click.argument("others", nargs=-1, type=click.UNPROCESSED, metavar="")
def start(others: tuple[str, ...], **given: Any) -> None:
    """Serve workspaces as `kcp start` does: what is written through the API goes to the store. Flags of kcp that are
    not listed are taken, and ignored."""
    start_kcp(options.settings(KcpSettings, given), others)


for command in (comment, *sharing.COMMANDS):
    main.add_command(command)


if __name__ == "__main__":
    main()

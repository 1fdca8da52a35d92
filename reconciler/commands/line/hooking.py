"""`treeplane hook pre-receive`. See line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from reconciler.commands.hook import judge_push
from reconciler.commands.line.folders import folder_option


@click.group()
def hook() -> None:
    """Hooks for the git server that a fleet is pushed to, where Treeplane does not host it."""


@hook.command("pre-receive")
@click.option(
    "--signers",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The directory of who may sign where a commit has no signers/ at all: as keys/signers of the server.",
)
@folder_option
def pre_receive(signers: Path | None, folder: str) -> None:
    """Say what a push changes and whom it holds; exit 1, so that it is refused, where the served treeplane.yaml says
    `spec.push: Refuse` and it would newly hold a workspace, and where it says `spec.safety.owners` or
    `spec.verification` and whoever signed may not push that. Run by git in the repository."""
    given = (os.fsdecode(line) for line in sys.stdin.buffer)  # a ref has any bytes
    answer = judge_push(os.environ, given, signers, folder)
    for line in answer.lines:
        click.echo(f"treeplane: {line}", err=True)
    raise SystemExit(1 if answer.refuses else 0)

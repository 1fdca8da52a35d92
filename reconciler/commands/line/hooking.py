"""`treeplane hook pre-receive`. See line."""

from __future__ import annotations

import os
import sys

import click

from reconciler.commands.hook import judge_push


@click.group()
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

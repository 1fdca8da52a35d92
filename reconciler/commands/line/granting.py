"""`treeplane grant`. See line."""

from __future__ import annotations

import click

from reconciler.commands.granting import GrantAsked
from reconciler.commands.granting import grant as put_grant
from reconciler.commands.line.filingoptions import FilingTyped, filing_options


@click.command()
@click.argument("user")
@click.argument("role")
@click.argument("path")
@click.option("--group", "is_group", is_flag=True, help="USER is a group.")
@click.option("--namespace", "-n", default="", help="In this namespace alone, not in all of the workspace.")
@click.option("--remove", is_flag=True, help="Take it back.")
@click.option("--admin", is_flag=True, help="Also to names that begin with system:.")
@filing_options
def grant(
    user: str, role: str, path: str, is_group: bool, namespace: str, remove: bool, admin: bool, filing: FilingTyped
) -> None:
    """Let USER into the workspace PATH, with the rights of ROLE there, and nothing above or below: a commit.

    ROLE: view, edit, admin, cluster-admin, or a Role or ClusterRole that the workspace's files declare.
    """
    kind = "Group" if is_group else "User"
    filing.run(lambda desk: put_grant(desk, GrantAsked(kind, user, role, path, namespace, remove, admin)))

"""`treeplane target`. See line."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from apiserver.model import clock, paths
from apiserver.model.kinds import GroupResource
from apiserver.model.selectors import valid_label_key, valid_label_value
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FilingAsked
from reconciler.commands.filing.desk import desk_for
from reconciler.commands.filing.machine import default_data_dir
from reconciler.commands.filing.telling import told
from reconciler.commands.line.filingoptions import FilingTyped, filing_options
from reconciler.commands.targeting import declaredin
from reconciler.commands.targeting.adding import TargetAsked, add
from reconciler.commands.targeting.admincluster import AdminCluster
from reconciler.commands.targeting.awaiting import ServedAs, WrittenTarget, until_ready
from reconciler.commands.targeting.removing import remove, remove_rights
from reconciler.commands.targeting.seen import TargetSeen, TargetsSeen
from reconciler.commands.targeting.showing import described, listed
from reconciler.commands.targeting.usable import usable
from reconciler.loading.changeset import ChangeKind
from reconciler.plugin.saying import say, warn
from reconciler.syncing.lease import NAMESPACE

_NOT_READY = 1
_output = click.option(
    "--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True
)
_kubeconfig = click.option("--kubeconfig", default="", help="The file to read instead of $KUBECONFIG.")
_workspace = click.option("--workspace", default="", metavar="PATH", help="The workspace that it stands in.")
_cluster = click.option(
    "--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Of the cluster's administrator. It is used once, and kept nowhere.",
)  # fmt: skip
_context = click.option("--context", default="", help="Of that kubeconfig  [default: the current one]")


@click.group()
def target() -> None:
    """The clusters that workspaces run on: add, show and remove them."""


def _labels(_context: click.Context, _option: click.Parameter, text: str) -> dict[str, str]:
    found = {}
    for part in filter(None, text.split(",")):
        name, said, value = part.partition("=")
        if not said or not valid_label_key(name) or not valid_label_value(value):
            raise click.BadParameter(f"{part!r} is no label, like region=eu")
        found[name] = value
    return found


def _kinds(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[GroupResource]:
    out = []
    for each in (part for text in given for part in text.split(",") if part):
        resource, _, group = each.partition(".")
        if not resource.isalnum() or resource != resource.lower() or not group:
            raise click.BadParameter(f"{each!r} is no kind, like databases.data.shop.example")
        out.append(GroupResource(group, resource))
    return out


def _exports(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, str]]:
    out = []
    for each in (part for text in given for part in text.split(",") if part):
        path, _, name = each.rpartition(":")
        if not paths.is_path(path) or not name:
            raise click.BadParameter(f"{each!r} is no export, like root:shop:databases:databases.data.shop.example")
        out.append((path, name))
    return out


@target.command("add")
@click.argument("name")
@_cluster
@_context
@_workspace
@click.option("--labels", default="", callback=_labels, metavar="A=B,…", help="By which Locations find it.")
@click.option("--server", default="", metavar="URL", help="The cluster's address, as Treeplane's server reaches it.")
@click.option(
    "--kinds", multiple=True, callback=_kinds, metavar="RESOURCE.GROUP", help="To run besides Kubernetes' own."
)
@click.option(
    "--exports", multiple=True, callback=_exports, metavar="PATH:NAME",
    help="APIs whose objects it runs: of the kinds that the export has, or of those of --kinds.",
)  # fmt: skip
@click.option("--wait", is_flag=True, help="Until it is Ready: exit 1 where it is not, with the reason.")
@click.option("--timeout", default=60.0, show_default=True, metavar="SECONDS", help="Of --wait.")
@filing_options
def add_target(
    name: str, kubeconfig: Path | None, context: str, workspace: str, labels: dict[str, str], server: str,
    kinds: list[GroupResource], exports: list[tuple[str, str]], wait: bool, timeout: float, filing: FilingTyped,
) -> None:  # fmt: skip
    """Add the cluster NAME: an account with the least rights and a token on it, a SyncTarget and a Secret here."""
    _require_name(name)
    if kubeconfig is None:
        raise click.UsageError("--kubeconfig FILE is missing: the cluster's administrator's")
    asked = TargetAsked(name, kubeconfig, context, workspace, labels, server, kinds, exports)
    with desk_for(filing.asked) as desk:
        done = add(desk, asked, dry=filing.asked.dry)
        waits = wait and not filing.asked.dry
        before = ServedAs.of(_seen(name, done.place.path, filing.asked, must=False)) if waits else None
        filed = desk.planned() if filing.asked.dry else desk.file(done.message)
    filed.files[:0] = done.files
    filed.notes += done.notes
    click.echo(told(filed, filing.output, secrets=filing.secrets), nl=False)
    if waits:
        changed = any(each.where == done.file and each.change is not ChangeKind.UNCHANGED for each in filed.files)
        ends = clock.rfc3339(done.ends.ends) if done.ends is not None else ""
        written = WrittenTarget(done.value, ends, filed.commit if changed else "", before)
        why = until_ready(partial(_seen, name, done.place.path, filing.asked, must=True), written, timeout)
        if why:
            text = f"{name} is not Ready after {timeout:g} s: {why}"
            raise Failure(text, f"treeplane target describe {name}", _NOT_READY)
        (say if filing.output == "table" else warn)(f"{name} is Ready")


@target.command("list")
@_workspace
@_kubeconfig
@_output
def list_targets(workspace: str, kubeconfig: str, output: str) -> None:
    """List sync targets: whether they are ready, what runs there, and when their credentials end."""
    say(listed(TargetsSeen(kubeconfig or _admin_kubeconfig(FilingAsked()), workspace).all(), output))


@target.command("describe")
@click.argument("name")
@_workspace
@_kubeconfig
@click.option(
    "--cluster-kubeconfig", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Of the cluster's administrator: who has the Lease is asked there.",
)  # fmt: skip
@_output
def describe_target(name: str, workspace: str, kubeconfig: str, cluster_kubeconfig: Path | None, output: str) -> None:
    """Show the sync target NAME: its conditions, and which workspaces' namespaces run there."""
    found = TargetsSeen(kubeconfig or _admin_kubeconfig(FilingAsked()), workspace).find(name)
    holders = None
    if cluster_kubeconfig is not None:
        leases = AdminCluster(cluster_kubeconfig, "").get("leases", "-n", NAMESPACE)
        named = {each["metadata"]["name"]: each["spec"].get("holderIdentity") for each in leases}
        holders = [f"{lease} by {holder or 'nobody'}" for lease, holder in sorted(named.items())]
    say(described(found, output, holders))


@target.command("remove")
@click.argument("name")
@_cluster
@_context
@_workspace
@click.option("--force", is_flag=True, help="At once: what runs there stays on the cluster, with nobody to change it.")
@filing_options
def remove_target(
    name: str, kubeconfig: Path | None, context: str, workspace: str, force: bool, filing: FilingTyped
) -> None:
    """Remove the sync target NAME: empty it first, then, called again, take it away.

    With --kubeconfig the account and its rights on the cluster go, too, once it is taken away.
    """
    _require_name(name)
    cluster = AdminCluster(kubeconfig, context) if kubeconfig is not None else None
    with desk_for(filing.asked) as desk:
        found = declaredin.find(desk, name, workspace)
        seen = _seen(name, found.place.path, filing.asked, must=not force)
        removal = remove(desk, found, seen, force=force)
        filed = desk.planned() if filing.asked.dry else desk.file(removal.message)
    filed.notes += removal.notes
    if cluster is not None and removal.gone and not filing.asked.dry:
        server = usable(cluster.config()).server
        files, notes = remove_rights(cluster, server, seen, force=force)
        filed.files += files
        filed.notes += notes
    click.echo(told(filed, filing.output, secrets=filing.secrets), nl=False)


def _require_name(name: str) -> None:
    if not paths.is_name(name):
        raise click.BadParameter(
            f"{name!r} cannot be a name: lower-case letters, digits and -, at most 63", param_hint="NAME"
        )


def _admin_kubeconfig(asked: FilingAsked) -> str:
    """On the server's machine the administrators' file, where the user names none."""
    if os.environ.get("KUBECONFIG"):
        return ""
    file = (asked.data_dir or default_data_dir()) / "admin.kubeconfig"
    return str(file) if file.is_file() else ""


def _seen(name: str, path: str, asked: FilingAsked, *, must: bool) -> TargetSeen | None:
    try:
        return TargetsSeen(_admin_kubeconfig(asked), path).maybe(name)
    except Failure:
        if must:
            raise
        return None

"""`treeplane status` and `treeplane reconcile-now`. See line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from apiserver.complaints.complaint import Complaints
from reconciler.commands.reconcilenow import reconcile_now as look_now
from reconciler.commands.status import of_server
from reconciler.commands.statuswords import FORMS, told

_DIRECTORY = click.Path(path_type=Path, exists=True, file_okay=False)
_output = click.option("--output", "-o", type=click.Choice(FORMS), default="table", show_default=True)
_kubeconfig = click.option(
    "--kubeconfig", default="", metavar="FILE", help="Who asks which server  [default: $KUBECONFIG, ~/.kube/config]"
)


@click.command()
@_kubeconfig
@click.option(
    "--data-dir", type=_DIRECTORY, help="Look at a server's data directory instead of asking it: also where none runs."
)
@click.option("--keys", type=_DIRECTORY, metavar="DIR", help="With --data-dir: its keys  [default: DATA-DIR/keys]")
@_output
def status(kubeconfig: str, data_dir: Path | None, keys: Path | None, output: str) -> None:
    """Print all that is wrong now, worst first, each with the command that goes on.

    Exit 0 where nothing is wrong, 1 where something is, 3 where nothing could be looked at.
    """
    if data_dir is not None and kubeconfig:
        raise click.UsageError("give --kubeconfig or --data-dir, not both")
    if keys is not None and data_dir is None:
        raise click.UsageError("--keys needs --data-dir")
    found = _on_disk(data_dir, keys or data_dir / "keys") if data_dir is not None else of_server(kubeconfig)
    click.echo(told(found, output), nl=False)
    raise SystemExit(1 if found.listed else 0)


def _on_disk(data_dir: Path, keys_dir: Path) -> Complaints:
    """What reads a store is imported for this alone: it would take most of the time of asking a server."""
    found: Complaints = import_module("reconciler.commands.datadirectory").of_data_directory(data_dir, keys_dir)
    return found


@click.command("reconcile-now")
@click.argument("path", default="")
@_kubeconfig
@click.option(
    "--wait", "seconds", type=click.FloatRange(0), default=30.0, show_default=True, metavar="SECONDS",
    help="How long to wait for what it finds; 0 not at all.",
)  # fmt: skip
@_output
def reconcile_now(path: str, kubeconfig: str, seconds: float, output: str) -> None:
    """Have the server look at its repository now; with PATH (root:shop:web, say) at the source of that workspace.

    Waits until that is done, and says what it found. Exit 0 where all is served, 1 where something is not, or is held,
    or the time is over.
    """
    found = look_now(kubeconfig, path, seconds)
    click.echo(found.told(output), nl=False)
    raise SystemExit(0 if found.good or (not found.answered and not seconds) else 1)

"""The command line: `treeplane up`, `validate`, `init`. Options and exit codes only; each command is a module."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import click

from apiserver.admission.completion import PLUGINS
from reconciler.commands.initialize import initialize
from reconciler.commands.up import Bounds, UpSettings, default_workers
from reconciler.commands.up import up as up_command
from reconciler.commands.validate import Checked, validate_path, validate_revision


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="treeplane")
def main() -> None:
    """A Kubernetes control plane whose database is a git repository."""


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT", param_hint="--listen")
    return host.strip("[]") or "127.0.0.1", int(port)


def _networks(found: tuple[str, ...]) -> tuple[str, ...]:
    for text in found:
        try:
            ip_network(text)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--webhook-network") from None
    return found


def _plugins(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    unknown = [name for name in names if name not in PLUGINS]
    if unknown:
        raise click.BadParameter(f"no such plugin: {', '.join(unknown)}", param_hint="--disable-admission-plugins")
    return names


@main.command()
@click.argument("repository", required=False, default="")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path(".treeplane"),
    show_default=True,
    help="Caches, keys and, for a directory, the hosted repository.",
)
@click.option("--listen", default="127.0.0.1:6443", show_default=True, help="HOST:PORT; port 0 takes a free one.")
@click.option("--workers", type=click.IntRange(1), default=default_workers, help="API processes  [default: cores - 1]")
@click.option("--branch", default="main", show_default=True, help="The branch that is served.")
@click.option("--keys", type=click.Path(path_type=Path), help="CA, certificates, tokens  [default: DATA-DIR/keys]")
@click.option(
    "--token-auth-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Static tokens, in kube-apiserver's CSV format.",
)
@click.option(
    "--webhook-network",
    "webhook_networks",
    multiple=True,
    help="A network (10.0.0.0/8) where webhooks of definitions may be called, besides the public internet. Repeatable.",
)
@click.option("--anonymous-auth", is_flag=True, help="Let requests without credentials in, as system:anonymous.")
@click.option(
    "--disable-admission-plugins",
    "disabled_admission",
    metavar="NAMES",
    default="",
    callback=lambda _context, _option, text: _plugins(text),
    help=f"Admission plugins to do without, by kube-apiserver's names: {', '.join(sorted(PLUGINS))}.",
)
@click.option("--heartbeat-seconds", type=float, default=20.0, hidden=True)
@click.option("--threshold-seconds", type=float, default=60.0, hidden=True)
@click.option(
    "--tolerance-seconds",
    type=float,
    default=300.0,
    show_default=True,
    help="How long a sync target may be not Ready before its placements move.",
)
@click.option(
    "--history-seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Forget past states after this time, up to twice as long; otherwise they stay while there is room.",
)
@click.option(
    "--event-seconds",
    type=click.FloatRange(min=1),
    default=3600.0,
    show_default=True,
    help="How long an Event stays after it was last written.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=600,
    show_default=True,
    help="Requests that one API process answers at a time; more get 429. Watches and system:masters do not count.",
)
@click.option(
    "--max-requests-per-user",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="How many of them may be one user's.",
)
@click.option(
    "--request-seconds",
    type=click.IntRange(1),
    default=60,
    show_default=True,
    help="How long a request other than a watch may take; then it gets 504.",
)
@click.option(
    "--shutdown-seconds",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="How long a stopping API process waits for requests under way, after it has ended the watches.",
)
@click.option("--no-sync", is_flag=True, hidden=True)
def up(
    repository: str,
    data_dir: Path,
    listen: str,
    workers: int,
    branch: str,
    keys: Path | None,
    token_auth_file: Path | None,
    webhook_networks: tuple[str, ...],
    anonymous_auth: bool,
    disabled_admission: tuple[str, ...],
    heartbeat_seconds: float,
    threshold_seconds: float,
    tolerance_seconds: float,
    history_seconds: float,
    event_seconds: float,
    max_requests: int,
    max_requests_per_user: int,
    request_seconds: int,
    shutdown_seconds: int,
    no_sync: bool,
) -> None:
    """Serve and reconcile REPOSITORY: a git repository, a URL, or a directory of manifests."""
    host, port = _address(listen)
    data_dir = data_dir.absolute()
    up_command(
        UpSettings(
            repository=repository,
            data_dir=data_dir,
            host=host,
            port=port,
            workers=workers,
            branch=branch,
            keys_dir=keys.absolute() if keys else data_dir / "keys",
            token_auth_file=token_auth_file.absolute() if token_auth_file else None,
            webhook_networks=_networks(webhook_networks),
            anonymous=anonymous_auth,
            disabled_admission=disabled_admission,
            sync_writes=not no_sync,
            heartbeat=heartbeat_seconds,
            threshold=threshold_seconds,
            tolerance=tolerance_seconds,
            history=history_seconds,
            events=event_seconds,
            bounds=Bounds(max_requests, max_requests_per_user, request_seconds, shutdown_seconds),
        )
    )  # fmt: skip


@main.command()
@click.argument("path", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rev", help="A commit, branch or tag of the repository at PATH instead of its files.")
@click.option("--output", "-o", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
def validate(path: Path | None, rev: str | None, output: str) -> None:
    """Print every error in PATH (default: here); exit 1 if there is one."""
    checked: Checked = validate_revision(path or Path(), rev) if rev else validate_path(path or Path())
    click.echo(checked.render(output), nl=False)
    raise SystemExit(1 if checked.problems else 0)


@main.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def init(directory: Path) -> None:
    """Write a small fleet to begin with into DIRECTORY."""
    for line in initialize(directory):
        click.echo(line)


if __name__ == "__main__":
    main()

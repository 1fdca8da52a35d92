"""`treeplane kubeconfig`: one's own for another place or commit, or one for somebody else. See line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from apiserver.auth.files import write_private
from reconciler.commands.addresses import external_url
from reconciler.commands.credentials import MadeKubeconfig, WantedUser, of_service_account, of_user
from reconciler.commands.failure import Failure
from reconciler.commands.line.durations import seconds_of
from reconciler.plugin.errors import ended
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.session import Session

_DAY = 86_400
_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_OF_USER = ("groups", "admin", "data_dir", "keys", "server")
_OPTIONS = {"groups": "--group", "lasts": "--for", "rev": "--at", "workspace": "--workspace"}


def _lasts(_context: click.Context, _option: click.Parameter, text: str) -> int | None:
    found = seconds_of(text) if text else None
    if text and not found:
        raise click.BadParameter(f"{text} is no duration: give one like 12h or 30d")
    return found


def _server(_context: click.Context, _option: click.Parameter, text: str) -> str:
    try:
        return external_url(text) if text else ""
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("path", default="")
@click.option("--at", "rev", default="", metavar="REV", help="A commit: an id, a branch, a tag, or pull/NUMBER.")
@click.option("--kubeconfig", default="", help="The file to read instead of $KUBECONFIG.")
@click.option("--user", help="For this user: with a new client certificate, on the server's machine.")
@click.option("--group", "groups", multiple=True, help="With --user: a group of the user's. Repeatable.")
@click.option("--service-account", metavar="NAMESPACE/NAME", help="For this ServiceAccount: with a token of it.")
@click.option("--workspace", metavar="PATH", help="With these two: the workspace that it leads to.")
@click.option(
    "--for",
    "lasts",
    default="",
    callback=_lasts,
    metavar="30d",
    help="How long it is good  [default: 30d, a token: 1d]",
)
@click.option("--admin", is_flag=True, help="With --user: also names and groups that begin with system:.")
@click.option(
    "--data-dir",
    type=_DIRECTORY,
    metavar="DIR",
    help="With --user: what the server serves from  [default: $TREEPLANE_DATA_DIR or .treeplane]",
)
@click.option("--keys", type=_DIRECTORY, metavar="DIR", help="With --user: its keys  [default: DATA-DIR/keys]")
@click.option(
    "--server", default="", callback=_server, metavar="URL", help="With --user: its URL  [default: as it serves]"
)
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A new file to write it to, for its owner's eyes alone.",
)
def kubeconfig(**given: Any) -> None:
    """Print a kubeconfig for the workspace PATH (default: the current one), with --at as that commit has it; or one for
    somebody else: --user, --service-account.

    The first names the commit by its id, so it means the same for ever, and the user that the current context names. A
    certificate cannot be taken back: docs/users.md says what can.
    """
    _require_fit(given)
    file: Path | None = given["file"]
    if file is not None and (file.exists() or file.is_symlink()):
        raise Failure(f"{file} is there already", "name another file, or remove it", 2)
    if given["user"] is None and given["service_account"] is None:
        raise SystemExit(ended(lambda: _put(_own(given["path"], given["rev"], given["kubeconfig"]), file)))
    made = _made(given)
    _put(made.text, file)
    who = given["user"] if given["user"] is not None else given["service_account"]
    click.echo(f"{f'{file} created: ' if file is not None else ''}{who!r}, until {made.ends}", err=True)


def _require_fit(given: dict[str, Any]) -> None:
    """That what was typed is of one kind."""
    user, account = given["user"] is not None, given["service_account"] is not None
    if user and account:
        raise click.UsageError("--user and --service-account are two kubeconfigs: give one of them")
    wrong = ["path", "rev"] if user or account else ["workspace", "lasts"]
    wrong += ["kubeconfig"] if user else _OF_USER
    for name in wrong:
        if given[name]:
            said = "PATH" if name == "path" else _OPTIONS.get(name, f"--{name.replace('_', '-')}")
            with_ = "--user" if user else "--service-account" if account else "neither --user nor --service-account"
            raise click.UsageError(f"{said} does not go with {with_}: see treeplane kubeconfig --help")


def _made(given: dict[str, Any]) -> MadeKubeconfig:
    workspace, lasts = given["workspace"] or "", given["lasts"]
    if given["user"] is None:
        return of_service_account(given["service_account"], workspace, lasts or _DAY, given["kubeconfig"])
    more = {name: given[name] for name in ("groups", "admin", "data_dir", "keys", "server")}
    return of_user(WantedUser(given["user"], workspace=workspace or "root", seconds=lasts or 30 * _DAY, **more))


def _put(text: str, file: Path | None) -> None:
    if file is None:
        click.echo(text, nl=False)
        return
    try:
        write_private(file, text.encode())
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}", "name another file") from error


def _own(path: str, rev: str, file: str) -> str:
    files = KubeconfigFiles.load(file)
    session = Session(files, "")
    where = path or session.path()
    there = Session(files, session.commit(rev, where) if rev else "")
    name = f"{where}@{there.at[:10]}" if there.at else where
    return files.alone(name, there.url(there.look_up(where).path))

"""`treeplane backup`, `treeplane recover` and `treeplane drill`. See line."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import click

from reconciler.commands.backup import BackupAsked
from reconciler.commands.backup import backup as write_backup
from reconciler.commands.drill import drill as run_drill
from reconciler.commands.drill import exit_code
from reconciler.commands.line.folders import folder_option
from reconciler.commands.line.output import output as output_option
from reconciler.commands.recover import BackupGiven, RecoverAsked, beside_of, clone_in, opened, said_of
from reconciler.commands.recover import recover as run_recover
from reconciler.commands.remoteaccess import access_options
from reconciler.drilling.freshclone import CloneAsked
from reconciler.drilling.rehearsal import KeptAside
from reconciler.drilling.telling import FORMS
from reconciler.repository.access import RemoteAccess
from reconciler.review.telling.harmless import plain

_GARBAGE = 100_000
"""Objects between two looks for garbage: this process ends soon."""


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_branch = click.option("--branch", default="main", show_default=True, help="The branch that is served.")
_backup = click.option(
    "--backup", "backup_file", type=_FILE, metavar="FILE", help="A backup, as `treeplane backup` writes it."
)
_identity = click.option(
    "--identity", type=_FILE, metavar="KEYFILE", help="With --backup: the age key that it is encrypted for."
)


def _given(backup_file: Path | None, identity: Path | None) -> BackupGiven | None:
    if (backup_file is None) != (identity is None):
        raise click.UsageError("--backup and --identity go together")
    return BackupGiven(backup_file, identity) if backup_file is not None and identity is not None else None


@click.command()
@click.option(
    "--file",
    "-o",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The file that is made; none is overwritten.",
)
@click.option("--recipient", required=True, metavar="AGE1…", help="The public half of an age key.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar="TREEPLANE_DATA_DIR",
    default=".treeplane",
    show_default=True,
    help="The server's data directory. The server may run.",
)
@click.option(
    "--keys",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Its keys  [default: DATA-DIR/keys]",
)
@click.option(
    "--without-repository",
    is_flag=True,
    help="Leave out the repository that the server hosts: it is in a clone that fetches all branches.",
)
def backup(target: Path, recipient: str, data_dir: Path, keys: Path | None, without_repository: bool) -> None:
    """Write what the server has and its repository has not into one encrypted file: its keys, what was made through the
    API and is in no commit, and commits that could not be pushed; and all of the repository where the server hosts it.
    The server may run.

    Only the secret half of the recipient's key opens it, which is needed neither here nor on this machine.
    """
    for line in write_backup(
        BackupAsked(data_dir, keys or data_dir / "keys", recipient, target, not without_repository)
    ):
        click.echo(line)


@click.command()
@click.option(
    "--from",
    "source",
    default="",
    metavar="CLONE|URL",
    help="A clone of the repository, or its URL  [default: the backup's, of what the server hosted]",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="The data directory that is made: a new one, or an empty one.",
)
@_branch
@folder_option
@_backup
@_identity
@access_options
def recover(
    source: str,
    data_dir: Path,
    branch: str,
    folder: str,
    backup_file: Path | None,
    identity: Path | None,
    access: RemoteAccess,
) -> None:
    """Make the data directory of a server that was lost, of its repository and a backup, step by step. What comes back
    and what does not is said before anything is put in place; nothing is started.

    Exit 2 where the directory is not empty, 3 where nothing can be recovered or the backup cannot be used, 4 where a
    URL does not answer; then the directory is as it was.
    """
    gc.set_threshold(_GARBAGE)
    given = _given(backup_file, identity)
    if not source and given is None:
        raise click.UsageError("give --from, or --backup with a backup that has the repository")
    for line in run_recover(RecoverAsked(source, branch, data_dir.absolute(), given, folder, access)):
        for each in line.split("\n"):
            click.echo(plain(each))


@click.command()
@click.argument("source", required=False, default="")
@click.option("--from", "origin", default="", metavar="SOURCE", help="The same as SOURCE.")
@_branch
@click.option(
    "--keys",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The keys/ of the server, or a backup of them: they are read, and nothing in them is printed.",
)
@folder_option
@_backup
@_identity
@access_options
@output_option(FORMS)
def drill(
    source: str,
    origin: str,
    branch: str,
    keys: Path | None,
    backup_file: Path | None,
    identity: Path | None,
    folder: str,
    access: RemoteAccess,
    output: str,
) -> None:
    """Clone SOURCE, recover the fleet from it into a store that is thrown away, and say whether that gives what is
    recorded. SOURCE: a URL, a repository or a data directory  [default: the
    repository that the backup has, else the clone around here]

    Prints how long a recovery takes, up to where it comes, and what no repository brings back. Exit 1 where something
    comes back otherwise, 3 where nothing can be recovered, 4 where SOURCE does not answer. No server, cluster or
    webhook is asked, and nothing is written to SOURCE.
    """
    gc.set_threshold(_GARBAGE)
    given = _given(backup_file, identity)
    if source and origin:
        raise click.UsageError("give SOURCE or --from, not both")
    if keys is not None and given is not None:
        raise click.UsageError("give --keys or --backup, which has them")
    asked = CloneAsked(source or origin, branch, folder, access)
    if given is None:
        found = run_drill(asked, KeptAside(keys))
    else:
        with opened(given) as taken:
            click.echo(plain(said_of(given, taken)), err=True)
            if not asked.source and taken.repository is not None:
                found = replace(run_drill(clone_in(given, taken, asked), beside_of(taken)), source=str(given.file))
            else:
                found = run_drill(asked, beside_of(taken))
    click.echo(FORMS[output](found), nl=False)
    raise SystemExit(exit_code(found))

"""`treeplane ws create`: as `kubectl ws create`; where workspaces are directories that somebody commits, those files.

Called by the command line. The server is asked first, unless files are asked for, or nobody here knows of a server.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import click

from apiserver.model import paths
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FilingAsked
from reconciler.commands.filing.desk import Desk, desk_for
from reconciler.commands.filing.telling import told
from reconciler.commands.forms import FORMS
from reconciler.layout import edit
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.layout.workspace import declaration
from reconciler.plugin.client import Unreachable
from reconciler.plugin.creating import FilesWanted, WantedWorkspace
from reconciler.plugin.errors import PluginError, ended
from reconciler.plugin.kubeconfigs import KubeconfigError, KubeconfigFiles
from reconciler.plugin.session import ServerPlace, is_path
from reconciler.plugin.ws import creation_parser, make, wanted_workspace

_PROGRAM = "treeplane ws create"


def create_workspace(arguments: list[str]) -> None:
    """Raises Failure, SystemExit."""
    options = _parser().parse_args(arguments)
    asks = not (options.dry_run or options.clone or options.data_dir or options.parent or options.folder)
    if asks:
        try:
            code = ended(lambda: _made(options))
        except _AsFiles as files:
            click.echo(f"{files}\nso it is written as files:", err=True)
        else:
            raise SystemExit(code)
    _file(options)


class _AsFiles(Exception):
    """It is not made through the API; the text says why."""


def _made(options: argparse.Namespace) -> None:
    try:
        make(options)
    except FilesWanted as error:
        raise _AsFiles(str(error)) from error
    except (KubeconfigError, Unreachable) as error:
        try:
            with desk_for(FilingAsked(dry=True, folder=options.folder)):  # there is a fleet here to write to
                pass
        except Failure:
            raise error from None
        raise _AsFiles(str(error)) from error


def _parser() -> argparse.ArgumentParser:
    parser = creation_parser(_PROGRAM)
    files = parser.add_argument_group("as files, where workspaces are directories that somebody commits")
    files.add_argument(
        "--parent", default="", metavar="PATH", help="the workspace around it (default: the current one)"
    )
    files.add_argument("--clone", type=Path, metavar="DIR", help="a clone of the fleet (default: the one around here)")
    files.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="what the server serves from (default: $TREEPLANE_DATA_DIR or .treeplane)",
    )
    files.add_argument("--keys", type=Path, metavar="DIR", help="its keys (default: DATA-DIR/keys)")
    files.add_argument(
        "--path", dest="folder", type=_folder, default="", metavar="FOLDER",
        help="the folder of the repository in which the fleet stands (default: the one around here, or the only one)",
    )  # fmt: skip
    files.add_argument("--dry-run", action="store_true", help="write nothing; with -o, show each file as it would be")
    return parser


def _folder(text: str) -> str:
    try:
        found: str = FORMS["folder"].read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return found


def _asked(options: argparse.Namespace) -> FilingAsked:
    return FilingAsked(options.clone, options.data_dir, options.keys, options.dry_run, options.folder)


def _file(options: argparse.Namespace) -> None:
    _require_for_files(options)
    asked = _asked(options)
    parent = options.parent or _current(options.kubeconfig)
    with desk_for(asked) as desk:
        path = put_workspace(desk, parent, wanted_workspace(options))
        filed = desk.planned() if asked.dry else desk.file([f"Create workspace {path}"])
    click.echo(told(filed, options.output), nl=False)


def _require_for_files(options: argparse.Namespace) -> None:
    """Files are a workspace once they are pushed and served: nobody can go there before, or wait for it here."""
    given = {
        "--enter": options.enter,
        "--create-context": bool(options.create_context),
        "--timeout": options.timeout != _parser().get_default("timeout"),
    }
    said = [name for name, is_given in given.items() if is_given]
    if said:
        hint = f"leave it out; once the workspace is served, `kubectl ws {options.name}` goes there"
        what = "is for a workspace that is made at once, and this one is written as files"
        raise Failure(f"{' and '.join(said)} {what}", hint, 2)


def put_workspace(desk: Desk, parent: str, wanted: WantedWorkspace) -> str:
    """Puts the directory of a new workspace on the desk; its path. Raises Failure."""
    if not paths.is_name(wanted.name):
        hint = "lower-case letters, digits and -, at most 63, beginning and ending with a letter or digit"
        raise Failure(f"{wanted.name!r} cannot be the name of a workspace", hint, 2)
    around = desk.workspace(parent)
    data = desk.read(around.manifest_path) if around.manifest is not None else None
    if data is not None and "mount" in (declaration(data, around.manifest_path).manifest.value.get("spec") or {}):
        raise Failure(f"{parent} is a mount: nothing stands below it", "choose another --parent", 2)
    path = paths.join(parent, wanted.name)
    try:
        wanted.check()
        value = wanted.manifest()
    except PluginError as error:
        raise Failure(str(error), "", 2) from error
    there = desk.tree.find(path)
    if there is not None:
        if not wanted.ignore_existing:
            raise Failure(
                f"{path} is there already, in {there.directory}", "say --ignore-existing, if that is as good", 2
            )
        desk.write(there.manifest_path, desk.read(there.manifest_path))
        return path
    if desk.draft.is_there(f"{around.directory}/{wanted.name}"):
        raise Failure(
            f"{around.directory}/{wanted.name} is a directory that only groups manifests",
            "choose another name, or move what is in it",
            2,
        )
    file = f"{around.directory}/{wanted.name}/{WORKSPACE_FILES[0]}"
    value = {key: each for key, each in value.items() if key != "spec" or each}
    desk.write(file, edit.new(file, value)[0])
    return path


def _current(kubeconfig: str) -> str:
    """The workspace that the current context leads to, root where that says none."""
    try:
        here = ServerPlace.of(KubeconfigFiles.load(kubeconfig).server()).path
    except PluginError:
        return paths.ROOT
    return here if here and is_path(here) else paths.ROOT

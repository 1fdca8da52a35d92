"""Where things stand on the status branch, and their canonical form.

The branch mirrors the layout of the desired one, as it is in the fleet's folder:

    fleet.yaml                                          the format, fleet id, the branch that is served, the folder of
                                                        it in which the fleet stands, the newest store revision that
                                                        was covered, when this history began, the directories that lost
                                                        their workspace.yaml alone, the commits that are on their way,
                                                        and those of tenants' repositories that say which workspaces
                                                        are in these
    schemas/<logical cluster>/<name>/<uid>.yaml         APIResourceSchemas that their providers no longer have, but
                                                        consumers are served with
    workspaces/root/shop/web/_summary.yaml              the workspace's summary (plan/summary.py)
    workspaces/root/shop/web/_status/<namespace or _>/<resource>.<group>/<name>.yaml
                                                        the residue of one object (plan/residue.py); that of a
                                                        Workspace stands in its own directory
    workspaces/root/shop/web/_ending/…                  objects that git declares no more and that wait for finalizers
    apart/root/shop/web/…                               the same of a workspace that is there still, though its
                                                        directory may be another's by now; by its path

Names that begin with an underscore cannot be workspaces. Files are YAML with sorted keys: the same content is the same
bytes.
"""

from __future__ import annotations

from typing import Any

import yaml

from apiserver.model.keys import Key
from reconciler.repository.folder import without
from reconciler.statusbranch import plainform

Object = dict[str, Any]

FORMAT = 1
"""Counted up where what stands on the branch means something else than before; fleet.yaml says it from the second on.
What is older is read, what is newer refused."""
FLEET = "fleet.yaml"
SCHEMAS = "schemas"
WORKSPACES = "workspaces"
APART = "apart"
SUMMARY = "_summary.yaml"
STATUS = "_status"
ENDING = "_ending"
TRAILER = "Source-Commit"
OURS = frozenset({SUMMARY, STATUS, ENDING})
"""What of a workspace's folder is about itself."""
_MARK = "="


def directory_of(path: str, directory: str) -> str:
    """A workspace's folder on the branch: its directory in the fleet's folder, or what that would be. A directory that
    only groups may have any name, so those that are ours here get a mark."""
    if not directory:
        return f"{WORKSPACES}/" + path.replace(":", "/")
    parts = without(directory).split("/")
    return "/".join(f"{_MARK}{part}" if part in OURS or part[0] == _MARK else part for part in parts)


def apart(path: str) -> str:
    """Where a workspace stands that has no directory of its own any more, for `directory_of`: no commit has such a
    directory."""
    return f"{APART}/" + path.replace(":", "/")


def is_apart(directory: str) -> bool:
    return directory.startswith(f"{APART}/")


def owner_of(path: str) -> str:
    """The folder of the workspace that a file of the branch is about; "" for one that is about none."""
    folder, found, _ = path.partition("/_")
    return folder if found else ""


def directory_in_git(directory: str) -> str:
    """What `directory_of` made a folder of the branch of, where that is a directory in the fleet's folder."""
    return "/".join(part.removeprefix(_MARK) for part in directory.split("/"))


def name_in_git(name: bytes) -> bytes:
    """The same of one directory's name, as it stands in a tree."""
    return name[1:] if name.startswith(_MARK.encode()) else name


def workspace_of(file: str) -> str:
    """The folder of the workspace that a file of the branch belongs to."""
    for mark in (STATUS, ENDING):
        directory, found, _ = file.partition(f"/{mark}/")
        if found:
            return directory
    return file.rpartition("/")[0]


def status_path(directory: str, key: Key) -> str:
    return f"{directory}/{STATUS}/{_place(key)}"


def ending_path(directory: str, key: Key) -> str:
    return f"{directory}/{ENDING}/{_place(key)}"


def _place(key: Key) -> str:
    resource = key.resource.partition(":")[0]
    return f"{key.namespace or '_'}/{resource}/{key.name}.yaml"


def schema_path(key: Key) -> str:
    return f"{SCHEMAS}/{key.cluster}/{key.namespace}/{key.name}.yaml"


def dump(value: Object) -> bytes:
    plain = plainform.dumped(value)
    if plain is not None:
        return plain
    out: bytes = yaml.dump(
        value, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True, encoding="utf-8", width=plainform.WIDTH
    )
    return out


def load(data: bytes) -> Object:
    found: Object = yaml.load(data, Loader=yaml.CSafeLoader)
    return found

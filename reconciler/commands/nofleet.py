"""Directories that are no fleet, told before anything is made of them: what is missing, what is there instead, and
where the nearest fleet is.

Called for plain directories, by `up` before the first start makes a repository of one, and by `validate`. Whether a
fleet's files are right is the loader's to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from reconciler.commands.failure import Failure
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import FILE, parse_fleet
from reconciler.layout.tree import ROOT

_DEEP, _MOST = 3, 2000
"""How far down fleets are looked for, and in how many directories."""
_SHOWN = 3
_PLACES = (
    (("Chart.yaml",), "a Helm chart"),
    (("kustomization.yaml", "kustomization.yml", "Kustomization"), "a directory for kustomize"),
    (("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"), "a compose file"),
    (("values.yaml",), "values of a Helm chart"),
    (("workspace.yaml",), "a workspace"),
)
_MANIFESTS = {".yaml", ".yml", ".json"}


def require_fleet(directory: Path, command: str) -> None:
    """Raises Failure where `directory` is none, with what to type: `command` is what was typed before the directory.
    Looks at names of files beside and around it."""
    if not directory.exists():
        raise Failure(f"{directory} does not exist", "name a directory, or begin with: treeplane init DIRECTORY", 2)
    if not _is_fleet(directory):
        raise Failure(*_said(directory, command), 2)


def require_whole(directory: Path, command: str) -> None:
    """Raises Failure where a repository that is made of `directory` would be held as a whole from its first commit on:
    where it is no fleet, its treeplane.yaml does not read, or it has no workspace root."""
    require_fleet(directory, command)
    file = directory / FILE
    try:
        parse_fleet(file.read_bytes())
    except BadFile as bad:
        raise Failure("\n".join(f"{directory}/{each}" for each in bad.errors), code=1) from None
    except OSError as error:
        raise Failure(f"{file} cannot be read ({error.strerror})", "check its permissions") from error
    if not (directory / ROOT).is_dir():
        raise Failure(f"{directory}/{ROOT} is missing", "it is the workspace root: a directory, which may be empty", 1)


def _said(directory: Path, command: str) -> tuple[str, str]:
    """What is wrong, and what to do."""
    there = _what_is_there(directory)
    text = f"{directory} is no fleet: it has no {FILE}" + (f", and holds {there}" if there else "")
    found = list(dict.fromkeys([*_above(directory), *islice(_below(directory), _SHOWN)]))
    if not found and (top := _clone(directory)) is not None:
        found = list(islice(_below(top), _SHOWN))
    if found:
        return text, "\n".join(("the nearest fleet:", *(f"  {command} {_from_here(each)}" for each in found[:_SHOWN])))
    return text, f"begin with:\n  treeplane init {_from_here(directory)}"


def _what_is_there(directory: Path) -> str:
    with os.scandir(directory) as found:
        names = {each.name for each in islice(found, _MOST)}
    for files, what in _PLACES:
        if names.intersection(files):
            return what
    if any(Path(name).suffix in _MANIFESTS for name in names):
        return "files of manifests"
    return "" if names - {".git"} else "no files"


def _is_fleet(directory: Path) -> bool:
    return os.path.isfile(directory / FILE)  # noqa: PTH113 - it is False, and no error, where one may not look


def _above(directory: Path) -> Iterator[Path]:
    yield from islice((each for each in directory.resolve().parents if _is_fleet(each)), 1)


def _clone(directory: Path) -> Path | None:
    """The top of the work tree that it is in: a fleet may stand in another folder of that."""
    return next((each for each in directory.resolve().parents if (each / ".git").exists()), None)


def _below(directory: Path) -> Iterator[Path]:
    """The nearest first; bounded, whatever directory somebody is in."""
    looked, left = [directory], _MOST
    for _ in range(_DEEP):
        inside: list[Path] = []
        for each in looked:
            inside += _directories(each)
            if len(inside) > left:
                inside = inside[:left]
                break
        left -= len(inside)
        yield from filter(_is_fleet, inside)
        looked = [each for each in inside if not _is_fleet(each)]


def _directories(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as found:
            names = [each for each in islice(found, _MOST) if not each.name.startswith(".")]
        return sorted(Path(each) for each in names if each.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _from_here(directory: Path) -> str:
    """As one would type it."""
    relative = os.path.relpath(directory)
    return str(directory) if relative.startswith("../..") else relative

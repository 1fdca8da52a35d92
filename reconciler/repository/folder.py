"""The folder of a repository in which a fleet stands, and what may be one.

Called by `up` and by whoever opens the repository of a fleet. A folder is a path from the top of the repository, "" for
the top itself. All paths that anybody meets, in trees, records, messages and commits, are the repository's; which of
them are the fleet's follows from the folder alone. What stands outside of it is not the fleet's, and is never read.
"""

from __future__ import annotations

FILE = "treeplane.yaml"
"""What makes a folder that of a fleet."""
_LONGEST, _DEEPEST = 400, 8
_ANYWHERE = {"", ".", ".."}
_ROOM = "workspaces"
_FIRST = {"keys", "apart"}
"""What paths in records begin with that are of no commit: of Secrets that git must not hold, of workspaces without a
directory."""


def joined(directory: str, name: str) -> str:
    """The path of what a directory ("" for the top) holds."""
    return f"{directory}/{name}" if directory else name


def without(path: str) -> str:
    """A directory of a workspace as it is called within its fleet's folder, which has no part of this name. Worked
    example:

    fleets/prod/workspaces/root/shop   → workspaces/root/shop
    """
    if path.startswith(f"{_ROOM}/"):
        return path
    _, found, below = path.partition(f"/{_ROOM}/")
    return f"{_ROOM}/{below}" if found else path


def named(text: str) -> str:
    """The folder that somebody names, as paths have it."""
    return "" if text in (".", "./") else text.removesuffix("/")


def unfit(folder: str) -> str:
    """Why a folder cannot be one, "" where it can. It is anybody's text."""
    parts = folder.split("/")
    if folder == "":
        return ""
    if folder.startswith(("/", "~")):
        return "it begins at the top of the machine, and is to begin at the top of the repository"
    if _ANYWHERE & {*parts}:
        return "a path from the top of the repository has no empty part, no . and no .. in it"
    if any(part.lower().rstrip(". ") in (".git", "git~1") for part in parts):
        return "what git keeps for itself is in no commit"
    if "\\" in folder or not folder.isprintable():
        return "it has a character that no path of a fleet has"
    if _ROOM in parts:
        return f"{_ROOM}/ is what stands in a fleet's folder, and no part of its path"
    if parts[0] in _FIRST:
        return f"{parts[0]}/ at the top is a name that Treeplane uses for what is in no commit"
    if len(folder) > _LONGEST or len(parts) > _DEEPEST:
        return f"it has more than {_LONGEST} characters, or more than {_DEEPEST} parts"
    return ""

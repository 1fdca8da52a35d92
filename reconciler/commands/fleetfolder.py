"""In which folder of a repository the fleet stands that somebody works on: for commands that need no server.

Called by whoever opens a clone. Where one is says it, or that there is but one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from reconciler.commands.failure import Failure
from reconciler.layout.fleet import FILE
from reconciler.layout.tree import TOP, WorkspaceTree
from reconciler.repository.folder import joined, named, unfit
from reconciler.repository.objects import Repository

_DEEP, _MOST, _SHOWN = 4, 4000, 3
"""How far down a commit's tree fleets are looked for, in how many directories; how many are named."""


def settle(repo: Repository, top: Path | None, here: Path, folder: str = "") -> None:
    """Has `repo` read the fleet in `folder`; "": that in whose folder `here` is; else that at the top; else
    the only one. `top`: of the work tree, if there is one. Raises Failure where there are several."""
    found = folder or (_around(top, here) if top is not None else None)
    repo.folders = (found if found is not None else _only(repo),)


def require(repo: Repository, branch: str, folder: str) -> None:
    """Raises Failure where a branch neither has nor ever had a fleet in `folder`. One that had is held: absence is no
    deletion."""
    head = repo.ref(f"refs/heads/{branch}") or repo.ref(f"refs/remotes/origin/{branch}")
    if not folder or head is None:
        return
    tree, file = repo.commit(head).tree, joined(folder, FILE)
    if repo.entry_at(tree, file) is not None or repo.versions(head, file):
        return
    fault = WorkspaceTree(Repository(repo.path, (folder,)), tree).folder_fault() or f"has no {FILE}"
    found = [*islice(below(repo, tree), _SHOWN)]
    hint = (
        "\n".join(("the nearest fleet:", *(f"  --path {each}" for each in found))) if found else "push it there first"
    )
    raise Failure(f"{folder} of {repo.path} {fault}", hint, 2)


def _around(top: Path, here: Path) -> str | None:
    above, top = here.resolve(), top.resolve()
    while above.is_relative_to(top):
        folder = named(above.relative_to(top).as_posix())
        if not unfit(folder) and (above / FILE).is_file():
            return folder
        if above == top:
            break
        above = above.parent
    return None


def _only(repo: Repository) -> str:
    head = repo.resolve("HEAD")
    tree = repo.commit(head).tree if head is not None else None
    if tree is None or repo.entry_at(tree, FILE) is not None:
        return ""
    found = [*islice(below(repo, tree), _SHOWN + 1)]
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
        raise Failure(
            f"there are several fleets in {repo.path}: {shown}",
            "go into the folder of one of them, or name it: --path FOLDER",
            2,
        )
    return found[0] if found else ""


def below(repo: Repository, tree: str) -> Iterator[str]:
    """The folders of a commit's tree in which fleets stand, the nearest to its top first; bounded."""
    looked, left = [("", tree)], _MOST
    for _ in range(_DEEP):
        inside = [(joined(at, e.name), e.id) for at, each in looked for e in repo.entries(each) if e.kind == "tree"]
        looked, left = [each for each in inside if each[0].rpartition("/")[2] != TOP][:left], left - len(inside)
        fleets = {at for at, each in looked if not unfit(at) and FILE in repo.pick(each, (FILE,))}
        yield from sorted(fleets)
        looked = [each for each in looked if each[0] not in fleets]
        if left <= 0:
            return

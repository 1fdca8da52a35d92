"""Commits in a file: what some refs of a repository have and others lack, as git's bundle.

Called by saving, for what a backup has of a mirror or of a hosted repository. A bundle names the commits that it goes
on from. It is taken only by a repository that has these, and only where all of it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from reconciler.repository.command import git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository

_LINE = re.compile(r"([0-9a-f]{40}) (\S+)")
_GROUND = re.compile(rb"-([0-9a-f]{40})(?: |$)")
_SETTINGS = {"fetch.unpackLimit": "1", "gc.auto": "0", "maintenance.auto": "false"}


def bundle(repo: Repository, refs: Collection[str], known: Collection[str], file: Path) -> bool:
    """Writes what the refs have that the commits `known` lack; whether there is any such thing. Raises
    RepositoryUnreadable."""
    named = [name for name in refs if (commit := repo.ref(name)) is not None and _adds(repo, commit, known)]
    if not named:
        return False
    given = "".join(f"{line}\n" for line in (*named, *(f"^{commit}" for commit in known)))
    answer = git(repo.git_dir, "bundle", "create", "--quiet", str(file), "--stdin", given=given.encode())
    if answer.code != 0:
        raise RepositoryUnreadable(f"{repo.path} cannot be read: {answer.error}")
    return True


def heads(repo: Repository, file: Path) -> dict[str, str]:
    """The refs of a bundle, and what they name. Raises RepositoryUnreadable."""
    answer = git(repo.git_dir, "bundle", "list-heads", str(file))
    if answer.code != 0:
        raise RepositoryUnreadable(f"the commits of a backup do not read: {answer.error}")
    return {found[2]: found[1] for found in map(_LINE.fullmatch, answer.output.splitlines()) if found is not None}


def lacking(repo: Repository, file: Path) -> list[str]:
    """The commits that a bundle goes on from and the repository does not have."""
    found = []
    with file.open("rb") as lines:
        for line in lines:
            if line == b"\n":  # the pack comes
                break
            ground = _GROUND.match(line)
            if ground is not None:
                found.append(ground[1].decode())
    return [commit for commit in found if not repo.has(commit)]


def unbundle(repo: Repository, file: Path, refs: Mapping[str, str]) -> None:
    """Takes refs of a bundle, each under the name that is given for it, whatever had that name; both may be patterns.
    Raises RepositoryUnreadable."""
    wanted = [f"+{name}:{here}" for name, here in refs.items()]
    arguments = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap=", str(file), *wanted)
    answer = git(repo.git_dir, *arguments, settings=_SETTINGS)
    if answer.code != 0:
        raise RepositoryUnreadable(f"the commits of a backup cannot be taken: {answer.error}")


def _adds(repo: Repository, commit: str, known: Collection[str]) -> bool:
    """Whether it is here, with something that these lack."""
    return repo.has(commit) and not any(repo.is_ancestor(commit, other) for other in known)

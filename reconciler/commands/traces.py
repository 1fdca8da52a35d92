"""Traces of a status branch that is not there: a fleet that was served before must not begin anew by accident.

Called at a start that finds nothing recorded and nothing stored. Without what was recorded every object would get a new
UID, and every real cluster a second copy of what runs on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from apiserver.model.commits import own
from reconciler.commands.installation import Installation
from reconciler.loading.realtargets import real_targets
from reconciler.repository import origin
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import HISTORY, STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.statusbranch.naming import names


class Trace(NamedTuple):
    """`what` was found, and the `command` that fetches what is missing. `branch`: the status branch's name."""

    what: str
    command: str
    branch: str


def trace(mirror: Mirror, installation: Installation, fleet: str, head: str) -> Trace | None:
    """What shows that this fleet was recorded before, the surest first; None if nothing does. Raises
    RepositoryUnreadable where a URL that was there just now is not any more."""
    return next(_all(mirror, installation, fleet, head), None)


def _all(mirror: Mirror, installation: Installation, fleet: str, head: str) -> Iterator[Trace]:
    # The name never changes once a fleet is served: where several were written, it is rather the first.
    branches = names(mirror.repository, head)[::-1]
    for branch in branches:
        yield from _in_source(mirror, branch)
    yield from _in_data(mirror, installation, fleet, branches[0])
    if not mirror.is_remote:
        for branch in branches:
            yield from _at_origin(mirror, head, branch)


def _in_source(mirror: Mirror, branch: str) -> Iterator[Trace]:
    """Refs of the source that hold, or held, the branch."""
    source = mirror.source_name
    for ref in sorted(mirror.refs(HISTORY), reverse=True):
        if mirror.is_remote:
            command = f"git clone --bare {source} fleet.git; cd fleet.git; git fetch origin {ref}:refs/heads/{branch}; "
            command += f"git push origin {branch}"
        else:
            command = f"git -C {source} branch {branch} {ref}"
        yield Trace(f"{source} has {ref}, an earlier part of its history", command, branch)
    for ref in [] if mirror.is_remote else mirror.refs("refs/remotes/"):
        if ref.endswith(f"/{branch}"):
            yield Trace(f"{source} has {ref}", f"git -C {source} branch {branch} {ref}", branch)


def _in_data(mirror: Mirror, installation: Installation, fleet: str, branch: str) -> Iterator[Trace]:
    """What this server itself wrote."""
    repo = mirror.repository
    found = f"git -C {mirror.path} push {mirror.source_name} %s:refs/heads/{branch}"
    for ref in sorted((name for name in repo.references if name.startswith(HISTORY)), reverse=True):
        yield Trace(f"{mirror.path} has {ref}, an earlier part of its history", found % ref, branch)
    elsewhere = f"git -C <a clone that has it> push {mirror.source_name} origin/{branch}:refs/heads/{branch}"
    if repo.ref(STATUS_REF) is not None:
        yield Trace(f"{mirror.path} names a commit of it that it lacks", elsewhere, branch)
    if installation.wrote(fleet):
        yield Trace(f"this data directory wrote it ({installation.file})", elsewhere, branch)


def _at_origin(mirror: Mirror, head: str, branch: str) -> Iterator[Trace]:
    """What the repository was cloned from. One that cannot be asked stops only a fleet with real clusters."""
    repo = Repository(mirror.source)
    if not origin.url(repo):
        return
    ref = f"refs/remotes/origin/{branch}"
    command = f"git -C {mirror.source} fetch origin +refs/heads/{branch}:{ref}"
    try:
        if origin.has_branch(repo, branch):
            yield Trace(f"the origin of {mirror.source} has it", command, branch)
    except RepositoryUnreadable as error:
        real = real_targets(mirror.repositories, [own(head)])
        if real:
            why = f"the origin of {mirror.source} may have it and does not answer ({error.what})"
            yield Trace(f"{why}, and there are real clusters: {', '.join(real)}", command, branch)

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
from reconciler.statusbranch.naming import places, served_by
from reconciler.statusbranch.recorded import RecordedFleet


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
    known = places(mirror.repository, head)[::-1]
    for place in known:
        if place.repository == mirror.status_repository:
            yield from _in_source(mirror, place.branch)
    if mirror.is_apart:
        yield from _of_the_fleets_own(mirror, fleet)
    yield from _in_data(mirror, installation, fleet, known[0].branch)
    if not mirror.is_remote:
        for place in known:
            if not place.repository:
                yield from _at_origin(mirror, head, place.branch)


def _of_the_fleets_own(mirror: Mirror, fleet: str) -> Iterator[Trace]:
    """A record of this fleet that its own repository has, though its place is elsewhere: it was there before."""
    repo, there, branch = mirror.repository, mirror.elsewhere(""), mirror.status_branch
    if branch not in {name.removeprefix("refs/heads/") for name in there.branches()}:
        return
    found = there.newest(branch)
    if found is not None and served_by(repo, found) and RecordedFleet(repo, found).facts().id == fleet:
        where = f"git -C {mirror.path} push {mirror.status_name} {found}:refs/heads/{branch}"
        yield Trace(f"{mirror.source_name} has {branch}, where it was before", where, branch)


def _in_source(mirror: Mirror, branch: str) -> Iterator[Trace]:
    """Refs of the repository of the status branch that hold, or held, it."""
    source = mirror.status_name
    for ref in sorted(mirror.status_refs(HISTORY), reverse=True):
        if mirror.status_is_remote:
            command = f"git clone --bare {source} fleet.git; cd fleet.git; git fetch origin {ref}:refs/heads/{branch}; "
            command += f"git push origin {branch}"
        else:
            command = f"git -C {source} branch {branch} {ref}"
        yield Trace(f"{source} has {ref}, an earlier part of its history", command, branch)
    for ref in [] if mirror.status_is_remote else mirror.refs("refs/remotes/"):
        if ref.endswith(f"/{branch}"):
            yield Trace(f"{source} has {ref}", f"git -C {source} branch {branch} {ref}", branch)


def _in_data(mirror: Mirror, installation: Installation, fleet: str, branch: str) -> Iterator[Trace]:
    """What this server itself wrote."""
    repo = mirror.repository
    found = f"git -C {mirror.path} push {mirror.status_name} %s:refs/heads/{branch}"
    for ref in sorted((name for name in repo.references if name.startswith(HISTORY)), reverse=True):
        yield Trace(f"{mirror.path} has {ref}, an earlier part of its history", found % ref, branch)
    elsewhere = f"git -C <a clone that has it> push {mirror.status_name} origin/{branch}:refs/heads/{branch}"
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

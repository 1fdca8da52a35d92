"""What a start goes on from: the commit of the status branch that counts, or why there is no start.

Called by the reconciler's process (reconcile) before the store is opened. What is refused here names the command that
goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.commands.again import again
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.teller import Teller
from reconciler.repository.mirror import Heads, Mirror
from reconciler.statusbranch.recorded import RecordedFleet


class Refused(Exception):
    """There is no start; the text says why, and the whole command that goes on."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """`recorded`: the status branch's commit to go on from, None where nothing was ever recorded."""

    heads: Heads
    recorded: RecordedFleet | None


def begin(settings: ReconcileSettings, mirror: Mirror, heads: Heads, teller: Teller) -> Beginning:
    """Settles what counts. Raises Refused, and RepositoryError where the source has to be asked and does not answer."""
    status = _settled(mirror, heads, teller)
    recorded = RecordedFleet(mirror.repository, status) if status else None
    if recorded is not None:
        _check_branch(settings, mirror, heads, recorded)
    return Beginning(heads, recorded)


def _settled(mirror: Mirror, heads: Heads, teller: Teller) -> str | None:
    """The status commit to start from: ours where it goes on from the published one, else the published one."""
    ours, published = mirror.status(), heads.status
    repo = mirror.repository
    if published is None or (ours is not None and repo.is_ancestor(published, ours)):
        return ours
    if ours is not None and not repo.is_ancestor(ours, published):
        teller.trouble("the status branch was written to by another server: going on from what it wrote")
    mirror.keep_status(published)
    return published


def _check_branch(settings: ReconcileSettings, mirror: Mirror, heads: Heads, recorded: RecordedFleet) -> None:
    """The status branch belongs to one branch. Another one takes it over only where that was renamed to it: the old one
    is gone, and the new one holds what was served."""
    named, asked, served = recorded.facts().branch, settings.branch, recorded.source
    if named in ("", asked):
        return
    command = again(settings.command, "--branch", named)
    text = f"this fleet is served from branch {named}, as its status branch says, and not from {asked}"
    if named in mirror.branches():
        source = mirror.source_name
        gone = f"git push {source} --delete {named}" if mirror.is_remote else f"git -C {source} branch -D {named}"
        raise Refused(
            f"{text}. Go on from {named} with:\n  {command}\n"
            f"If {named} was renamed to {asked}, the old name has to go first:\n  {gone}"
        )
    if heads.desired is None or not mirror.repository.is_ancestor(served, heads.desired):
        raise Refused(
            f"{text}. {named} is gone, but {asked} does not contain the commit that was served, {served}: it is no "
            f"other name for it. Bring {named} back and go on from it with:\n"
            f"  git push {mirror.source_name} {served}:refs/heads/{named}\n  {command}"
        )

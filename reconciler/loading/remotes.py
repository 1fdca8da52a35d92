"""What a loader knows of tenants' repositories, beside what is here of them (repository/repositories).

Made by whoever follows them (commands/sourcing), and given to the loader; read by sourced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from apiserver.model.commits import CommitRef
from apiserver.registry.tree import WorkspaceRecord
from reconciler.loading.owners import PushRights
from reconciler.loading.renderings import RenderedDirectory
from reconciler.repository.objects import Repository

UNKNOWN = "what programs make of it is not known yet", "it is served once they are done with it"
"""Why something is not served for now, and when it will be."""


def _signed(_: Repository, __: CommitRef) -> str:
    return ""


def _at_once(_: str, __: str, ___: Collection[RenderedDirectory]) -> bool:
    return True


def _anybody(_: WorkspaceRecord) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Remotes:
    """`head`: by a source's name and the branch, its head when it was looked at last, whole and here; "" where it never
    was. `fleet`: where the fleet's own repository is. `patient`: what is not here yet is no reason to hold a workspace,
    since nobody is served from what comes of it. `rights`: of who stands for what a workspace's source takes of other
    workspaces, None where nobody is asked. `unsigned`: why a commit of a source is not taken where commits
    have to be signed, "" where it is. `is_rendered`: whether it is known what programs make of directories; asked with
    the workspace that has the source, and the one for which. Where not it will be, and that one is judged again
    then."""

    head: Callable[[str, str], str]
    fleet: tuple[str, ...] = ()
    patient: bool = False
    rights: Callable[[WorkspaceRecord], PushRights | None] = _anybody
    unsigned: Callable[[Repository, CommitRef], str] = _signed
    is_rendered: Callable[[str, str, Collection[RenderedDirectory]], bool] = _at_once

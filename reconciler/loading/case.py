"""One workspace to be judged at one commit, and the verdict. See judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Op
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree
from reconciler.loading.moment import Moment
from reconciler.plan.deletions import Refused
from reconciler.plan.summary import Summary

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the status branch knows of a workspace: its summary, and the residue of its objects."""

    summary: Summary
    residue: Callable[[Key], Object | None]
    endings: Callable[[], Iterable[Object]]


def was_served(recorded: Recorded | None) -> bool:
    """Whether the status branch says that a workspace had a good commit."""
    return recorded is not None and recorded.summary.served != NONE


class Case(NamedTuple):
    """`directory` None: a workspace that ships with Treeplane and has no directory. `record`: as it is served now, None
    if it is new. `appears`: nothing of it is looked for in the store; its writes are refused where something is.
    `forced`: judge all of its content (a provider changed, or its secrets). `problems`: what is wrong already (found by
    layout). `recorded`: given at recovery. `intents`: writes through the API that wait; `proposed`: the commit was made
    of them."""

    path: str
    moment: Moment
    tree: WorkspaceTree
    directory: WorkspaceDir | None
    record: WorkspaceRecord | None
    appears: bool = False
    forced: bool = False
    problems: tuple[LayoutError, ...] = ()
    recorded: Recorded | None = None
    secrets: tuple[Manifest, ...] = ()
    intents: Mapping[Key, Intent] = MappingProxyType({})
    proposed: bool = False


@dataclass(slots=True)
class Verdict:
    """`ops` go to the store in one transaction, the workspace's record last. `provides`: exports, schemas or types
    changed, so that consumers have to be looked at again. `fault`: the problem is this program's, nobody else's.
    `refused`: the deletion that has to be allowed."""

    record: WorkspaceRecord
    ops: list[Op] = field(default_factory=list)
    problems: list[LayoutError] = field(default_factory=list)
    provides: bool = False
    changed: bool = False
    fault: bool = False
    refused: Refused | None = None

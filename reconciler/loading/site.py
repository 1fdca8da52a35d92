"""What judging stands on, the same for every workspace of a fleet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from apiserver.registry.catalog import Catalog
from apiserver.storage.protocol import Store
from reconciler.layout.sourceref import SourceRef
from reconciler.loading.identities import Identities
from reconciler.loading.moment import Moments
from reconciler.loading.remotes import Remotes
from reconciler.loading.sources import Content, Sources
from reconciler.loading.trees import Trees


class SeenHead(NamedTuple):
    """A head of a source. `content`: where it has the workspace's."""

    ref: SourceRef
    commit: CommitRef
    content: Content


@dataclass(frozen=True, slots=True)
class Site:
    """`writes`: the mode of workspaces whose type says none, as it is served. `most_objects`: how many objects one may
    have of which nobody says it, 0 for any. `guesses`: what is loaded is nobody's to serve, and no UID in it is that of
    the fleet's workspaces, so where a UID is stated one that looks alike is taken for what moved. `owners`: whether
    whoever pushes is asked about (spec.safety.owners), as is served. `remotes`: what is
    known of tenants' repositories; None where that is nobody's business, and only the fleet's own is judged. `heads`:
    of workspaces that were judged by a head of their source, which is what, and be their content good or not, the
    workspaces below them there follow.
    """

    fleet: str
    writes: str
    store: Store
    sources: Sources
    trees: Trees
    moments: Moments
    identities: Identities
    catalog: Catalog
    most_objects: int = 0
    guesses: bool = False
    owners: bool = False
    remotes: Remotes | None = None
    heads: dict[str, SeenHead] = field(default_factory=dict)

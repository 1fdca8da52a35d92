"""Has the statuses of workspaces written to the repositories that their contents come from, where they ask for that
(spec.source.status), while the server holds its fleet.

Made by the holder, which calls `serve` at each look; writing is the room sourcing's to do, in threads of its own, and
what is written statusbranch/excerpt's to say. It follows from the status branch as it is recorded in the
mirror, and from nothing that stands in those repositories. Whether it can be written is a condition of the workspace,
and nothing waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from apiserver.model import conditions, paths
from apiserver.model.conditions import Condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.sourcesettings import excerpt_settings
from reconciler.controllers import sourcecondition
from reconciler.controllers.sourcecondition import told_of_status
from reconciler.layout.sourceref import written_branch
from reconciler.loading.sourcelist import ListedSource
from reconciler.plan.computed import SOURCE_STATUS_WRITTEN
from reconciler.repository.library import Sign
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import SourceRefused, address
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.excerpts import Excerpt, Excerpted, MadeExcerpt, WrittenExcerpt
from reconciler.sourcing.excerptwriter import ExcerptWriter
from reconciler.sourcing.followed import FollowedSource
from reconciler.statusbranch import format
from reconciler.statusbranch.excerpt import WorkspaceExcerpt
from reconciler.statusbranch.recorded import RecordedFleet

Object = dict[str, Any]

DIRECTORY = "excerpts"
"""Where, in the data directory, what was written is kept."""
_PART = 0.1
"""Of the interval in which one is written once: the time at least between two looks at what there is to write."""
_END = 5.0


class FollowedSources(NamedTuple):
    """By name: what workspaces have their contents from, and those of it that are followed."""

    listed: Mapping[str, ListedSource]
    followed: Mapping[str, FollowedSource]


class Excerpting:
    """`start`, `serve`, `close`. `ring`: wakes whoever calls `serve`. `sign`: signs the commits. `check`: raises where
    another process writes for this fleet by now."""

    def __init__(
        self,
        settings: ReconcileSettings,
        store: Store,
        mirror: Mirror,
        ring: Callable[[], None],
        sign: Sign,
        check: Callable[[], None],
    ) -> None:
        self._settings, self._store, self._status = settings, store, mirror.repository
        self._ring, self._sign, self._check = ring, sign, check
        self._writer: ExcerptWriter | None = None
        self._seen: tuple[FollowedSources, str | None] | None = None
        self._told: dict[str, Condition] = {}
        """By logical cluster."""
        self._again, self._news = 0.0, False

    def start(self) -> None:
        """Once the fleet is this server's."""
        store = SourceStore(self._settings.data_dir / DIRECTORY)
        settings = excerpt_settings(self._settings)
        self._writer = ExcerptWriter(store, settings, self._heard, self._sign, self._check)
        self._writer.start()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close(_END)
            self._writer = None

    def serve(self, sources: FollowedSources) -> None:
        """Has written what there is to write by now, and tells what became of it."""
        writer, now = self._writer, time.monotonic()
        if writer is None or (not sources.listed and self._seen is None):
            return
        at = sources, self._status.ref(STATUS_REF)
        if not self._news and (now < self._again or self._is_seen(at)):
            return
        self._again, self._news = now + _PART * self._settings.source_interval, False
        self._seen = at if sources.listed else None
        asked = dict[str, str]()
        for name, each in sources.listed.items():
            branch = self._branch(each) if each.is_wanted else ""
            if branch:
                asked[name] = branch
        writer.write(self._wanted(sources, asked, at[1]))
        told = dict[str, Condition]()
        for name, branch in asked.items():
            source, is_followed = sources.listed[name], name in sources.followed
            said = self._condition(source, branch, writer.known(name), is_followed=is_followed)
            if said is not None and said != self._told.get(source.cluster):
                sourcecondition.tell(self._store, source.path, said)
            if said := said or self._told.get(source.cluster):
                told[source.cluster] = said
        self._told = told

    def _is_seen(self, at: tuple[FollowedSources, str | None]) -> bool:
        """The sources are told anew, as another tuple, whenever something may have changed."""
        return self._seen is not None and self._seen[0] is at[0] and self._seen[1] == at[1]

    def _branch(self, source: ListedSource) -> str:
        """The branch that is to be written, "" for none: then nothing is said of one either."""
        workspace = self._workspace(source.path)
        if workspace is None:
            return ""
        branch = written_branch(workspace)
        if not branch and _said(workspace) is not None:
            sourcecondition.take_back(self._store, source.path, SOURCE_STATUS_WRITTEN)
        return branch

    def _workspace(self, path: str) -> Object | None:
        record = tree.workspace_at(self._store, path)
        parent = tree.workspace_at(self._store, record.parent) if record is not None and record.parent else None
        key = Key(WORKSPACES, parent.cluster, "", paths.base(path)) if parent is not None else None
        return Objects(self._store).get(key) if key is not None else None

    def _wanted(self, sources: FollowedSources, asked: Mapping[str, str], head: str | None) -> dict[str, Excerpt]:
        recorded = RecordedFleet(self._status, head) if head is not None and asked else None
        wanted = dict[str, Excerpt]()
        for name, branch in asked.items():
            source, followed = sources.listed[name], sources.followed.get(name)
            record = tree.workspace_at(self._store, source.path)
            if recorded is None or followed is None or record is None or branch == source.ref.branch:
                continue
            directory = format.directory_of(record.path, record.directory)
            found = WorkspaceExcerpt.of(recorded, source.path, directory, name)
            try:
                place = replace(followed, address=address(source.ref.repository, branch), keep=frozenset())
            except SourceRefused:
                continue  # layout let none such through
            if found is not None:
                wanted[name] = Excerpt(place, found.version, _Maker(found, self._status))
        return wanted

    def _condition(self, source: ListedSource, branch: str, known: Excerpted, *, is_followed: bool) -> Condition | None:
        """What is to be told; None: what was told."""
        where = f"the branch {branch} of {source.ref.repository}"
        if not is_followed:
            return told_of_status(False, "NotFollowed", f"{where} is not written: SourceFollowed says why")
        if known.fault:
            hint = f" ({known.hint})" if known.hint else ""
            return told_of_status(False, known.reason, f"{where} is not written: {known.fault}{hint}")
        if known.written:
            return told_of_status(True, "Written", f"the status is written to {where}")
        workspace = self._workspace(source.path)
        if workspace is None or _said(workspace) is not None:
            return None  # it is another one by now, and will be there soon
        return told_of_status(None, "Writing", f"nothing is written to {where} yet")

    def _heard(self) -> None:
        """Called by a thread of the writer's."""
        self._news = True
        self._ring()


class _Maker:
    """Makes an excerpt of what is recorded, in a thread of the writer's."""

    def __init__(self, excerpt: WorkspaceExcerpt, status: Repository) -> None:
        self._excerpt, self._status = excerpt, status

    def __call__(self, here: Repository, before: WrittenExcerpt | None) -> MadeExcerpt:
        known = (before.version, before.tree) if before is not None else None
        return MadeExcerpt(self._excerpt.write(self._status, here, known), self._excerpt.message(self._status))


def _said(workspace: Object) -> Condition | None:
    return conditions.get((workspace.get("status") or {}).get("conditions"), SOURCE_STATUS_WRITTEN)

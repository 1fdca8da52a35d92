"""Workspaces whose directories a commit takes away: which of them go, and which stay until that is allowed.

Called by steps. A workspace and all below it that goes with it are one removal, with one hash. One with manifests in it
is protected, unless it or its type frees it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.guard import Guard, line_of
from reconciler.loading.render import key_of
from reconciler.plan.deletions import Line, Loss, RefusedDeletion, digest_of
from reconciler.plan.trespasses import Trespasses

REMOVED = "was removed: "
"""How what is wrong with one begins that stays."""


class Removal(NamedTuple):
    """Of the workspace at `path` and of `members`, itself among them. `refused`: why they stay, None if they go.
    `trespass`: the same, where whoever removed something of it may not."""

    path: str
    members: tuple[WorkspaceRecord, ...]
    refused: RefusedDeletion | None
    trespass: LayoutError | None = None

    @property
    def stays(self) -> bool:
        return self.refused is not None or self.trespass is not None

    def problem(self, directory: str) -> LayoutError:
        """`directory`: where the uppermost of them that is there stood."""
        if self.trespass is not None:
            return self.trespass
        return LayoutError(directory or self.path, 0, 0, f"{REMOVED}{self.refused}")


class Removals:
    """`record` finds a workspace's record; `most`: how many may go at once, None for any number; `moves`: why one stays
    since it may be what a commit was to move, "" if it does not; `trespassed`: what was touched of one without a right,
    which nobody allows; `allows`: whether the commit allows any of that; `theirs`: what commits of a tenant's
    repository allow of a workspace that stands there, None where none came; `is_lost`: whether one is not served since
    a recovery could not bring it back, so that nobody knows what would go with it."""

    def __init__(
        self,
        guard: Guard,
        record: Callable[[str], WorkspaceRecord | None],
        most: int | None,
        moves: Callable[[str], str] = lambda _: "",
        trespassed: Callable[[str], Trespasses] = lambda _: Trespasses(),
        *,
        allows: bool = False,
        theirs: Callable[[str], Collection[str] | None] = lambda _: None,
        is_lost: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._guard, self._record, self._most, self._moves = guard, record, most, moves
        self._trespassed, self._allows, self._theirs = trespassed, allows, theirs
        self._is_lost = is_lost

    @property
    def since(self) -> CommitRef:
        """The fleet's served commit before the step."""
        return self._guard.since

    def hears(self, path: str) -> bool:
        """Whether a commit that is new allows anything, of what may be said of that workspace."""
        return self._allows or bool(self._guard.said()) or bool(self._theirs(path))

    def judge(self, gone: Collection[str], since: Mapping[str, CommitRef]) -> list[Removal]:
        """`gone`: paths of workspaces. `since`: of those that were refused before, what was served by then."""
        trees = dict(_trees(gone))
        losses = {top: self._weighty(members) for top, members in trees.items()}
        lines = (loss for found in losses.values() for loss in found if loss.line.resource == WORKSPACES)
        count = sum(not loss.free for loss in lines)
        many = self._most is not None and count > self._most
        out = []
        for top, members in trees.items():
            records = tuple(r for path in members if (r := self._record(path)) is not None)
            trespass = next((each.error for path in members for each in self._trespassed(path)), None)
            if trespass is not None:
                out.append(Removal(top, records, None, trespass))
                continue
            why = self._moves(top) or self._why(losses[top], many=many)
            out.append(Removal(top, records, self._refused(top, members, why, since.get(top, NONE)) if why else None))
        return out

    def _refused(self, top: str, members: Iterable[str], why: str, since: CommitRef) -> RefusedDeletion | None:
        """None if some commit allows it. Only here is all that goes read: it has a hash, and is told."""
        losses = [loss for path in members for loss in self._of(path, free=self._free(path))]
        allowed = self._guard.allows(losses, since) or digest_of(losses) in (self._theirs(top) or ())
        return None if allowed else RefusedDeletion(tuple(losses), why)

    def _why(self, losses: list[Loss], *, many: bool) -> str:
        protected = next((loss for loss in losses if loss.protected and not loss.free), None)
        if protected is not None:
            return f"{protected.line.path}:{protected.line.name} is protected: {protected.protected}"
        if many and any(not loss.free for loss in losses):
            return f"spec.safety.maxDeletedWorkspaces allows {self._most} in one commit"
        return ""

    def _free(self, path: str) -> bool:
        record = self._record(path)
        return record is not None and record.served and self._guard.freed(path)

    def _weighty(self, members: Iterable[str]) -> list[Loss]:
        """What may stand against it. Of a workspace that is free only what has a word of its own is read; of one that
        is not, one manifest protects it as all of them do."""
        out = []
        for path in members:
            record, free = self._record(path), self._free(path)
            if record is not None and free:
                out += [Loss(_line(path), free=True), *self._each(record, self._guard.outspoken(record), free=True)]
            else:
                out += islice(self._of(path, free=False), 1)
        return out

    def _of(self, path: str, *, free: bool) -> Iterator[Loss]:
        """A workspace's own line, and those of its objects."""
        record = self._record(path)
        if record is None or not record.served:
            yield Loss(_line(path), "it was served, and cannot be brought back yet" if self._is_lost(path) else "")
            return
        losses = self._each(record, self._guard.manifests(record), free=free)
        first = next(losses, None)
        yield Loss(_line(path), "it has manifests" if first is not None else "", free=free)
        if first is not None:
            yield first
            yield from losses

    def _each(self, record: WorkspaceRecord, manifests: Iterable[Manifest], *, free: bool) -> Iterator[Loss]:
        """The lines of some of a workspace's objects."""
        guard = self._guard
        for manifest in manifests:
            key = key_of(manifest, guard.catalog.kinds(record.cluster), record.cluster)
            if key is not None:
                # Of what goes with its workspace only a word of its own counts.
                yield guard.loss(record, key, manifest, free=True) if free else Loss(line_of(record.path, key))


def _line(path: str) -> Line:
    """A workspace's own."""
    return Line(paths.parent(path) or "", WORKSPACES, "", paths.base(path))


def _trees(gone: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """The uppermost of some workspaces, each with those below it, itself first."""
    top, members = "", list[str]()
    for path in sorted(gone, key=lambda p: p.split(":")):
        if top and path.startswith(top + ":"):
            members.append(path)
            continue
        if top:
            yield top, members
        top, members = path, [path]
    if top:
        yield top, members

"""Gather: the manifests that count, and whether anything is looked for in the store."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.registry.tree import WorkspaceRecord, summary
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import feeds
from reconciler.loading.gather import Gatherer
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.saidbefore import RenderedBefore


def look(at: Judgement) -> None:
    """Comes first, where something may stand in the store of what a workspace comes to; without it there is nothing."""
    at.look = at.grounds.stored


def gather_changed(at: Judgement) -> None:
    """Those in files that changed, and all where that decides about others."""
    _gather(at, whole=_is_exceptional(at))


def gather_all(at: Judgement) -> None:
    _gather(at, whole=True)


def _gather(at: Judgement, *, whole: bool) -> None:
    record, grounds = at.case.record, at.grounds
    base = grounds.served.of(record) if record is not None else None
    said = RenderedBefore(grounds.store, record.cluster, always=_by_others(at)) if record is not None else None
    at.gathered = Gatherer(grounds.site.sources, said, _damaged(at)).gather(at.case, base, whole=whole)
    at.gathered.shown_workspace = _shown(at)
    if at.case.trespasses.of_files and (record is None or not record.served):
        at.gathered.workspace = None  # of what nobody may make its name is shown, and why


def _damaged(at: Judgement) -> list[str]:
    """See Summary. Only who is held has any."""
    record, recorded = at.case.record, at.case.recorded
    if recorded is not None:
        return recorded.summary.damaged
    return summary(at.grounds.store, record.path).get("damaged") or [] if record is not None and record.errors else []


def _shown(at: Judgement) -> Manifest | None:
    """What the Workspace of one that never was served says: what it was judged by last."""
    record, site = at.case.record, at.grounds.site
    if record is None or record.served or not record.judged:
        return None
    for there in _judged_in(at, record):
        place = there.at(record.directory)
        is_it = place is not None and place.path == record.path
        found = site.sources.workspace(there, place) if place is not None and is_it else None
        if found is not None:
            return next(iter(found.manifests), None)
    return None


def _judged_in(at: Judgement, record: WorkspaceRecord) -> Iterator[WorkspaceTree]:
    """The trees that may have it as it was judged last. Of one in a tenant's repository that is what stands of that,
    or, where a load was cut off before it did, what it appeared with. The fleet's own may have another one at its path
    by now, which it would give way to."""
    case, trees = at.case, at.grounds.site.trees
    then = trees.at(record.judged) if trees.repositories.own.has(record.judged.id) else None
    if then is not None:
        yield then
    if record.origin.repository:
        grafts, graft = case.tree.grafts, case.tree.graft_of(record.directory)
        if grafts is not None and graft is not None:
            first = trees.graft({**graft.said, "commit": str(record.origin)})
            yield (then or case.tree).regrafted(grafts.with_(first))


def _is_exceptional(at: Judgement) -> bool:
    """Whether what is served follows from more than the commit it is served at, so that files which do not change
    may have something to say: a workspace that is held, one that keeps what its providers offered once, one with
    definitions on their way out, one with files that are encrypted for others, and one that other programs rendered."""
    record = at.case.record
    if record is None:
        return False
    said = summary(at.grounds.store, record.path)
    return bool(record.errors or record.locked or said.get("bindings") or said.get("ending")) or _by_others(at)


def _by_others(at: Judgement) -> bool:
    """Whether what is served was rendered by programs that are others now."""
    grounds, record = at.grounds, at.case.record
    found = feeds.noted(grounds.store, record.cluster) if record is not None else None
    return found is not None and found.by != grounds.site.sources.renders.fingerprint

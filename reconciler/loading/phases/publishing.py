"""Publish: what others see of the verdict. The workspace's record and summary, whom it relies on, which Secrets are
served; then it is known what became of the workspace."""

from __future__ import annotations

from dataclasses import replace

from apiserver.model.storagenames import WORKSPACES
from apiserver.registry.tree import listed, placed, put_workspace, summary_in
from apiserver.storage.protocol import Check, Delete, Op, Put, PutRow, Row
from reconciler.loading import feeds
from reconciler.loading.changeset import ChangeKind
from reconciler.loading.consumers import listing, named_by_stored, taken
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.secrets import kept, kept_keys
from reconciler.loading.world import PROVIDED


def publish(at: Judgement) -> None:
    """Of a good workspace."""
    case, verdict, changes = at.case, at.verdict, at.verdict.changes
    if at.gathered.complete:
        changes.also += [*_kept_secrets(at), *_kept_keys(at)]
    note_feeds(at, held=False)
    changes.provides = any(key.resource in PROVIDED for key in changes.written())
    served = verdict.record
    if served.head != case.moment.commit and (changes or served != case.record):
        verdict.record = replace(served, head=case.moment.commit)
    list_consumer(at, held=False)
    seal(at)
    before = case.record
    changes.mended = before is not None and bool(before.errors)
    if before is None or not before.served:
        changes.became = ChangeKind.CREATED
    elif before.directory != verdict.record.directory:
        changes.became = ChangeKind.MOVED
    elif changes:
        changes.became = ChangeKind.CONFIGURED


def follow_on(at: Judgement) -> None:
    """It is back where it was, and follows from there; one that stays, though the commit has it no more, from the next
    commit that concerns it."""
    at.verdict.again = not at.case.stays


def list_consumer(at: Judgement, *, held: bool) -> None:
    """Whoever provides to the workspace is to find it. `held`: it is served with what it took before, too."""
    found, path = at.content.apis, at.case.path
    if found is not None:
        store = at.grounds.store
        before = taken(store, path) if held else frozenset()
        stored = named_by_stored(store, at.record.cluster, path) if at.case.record is not None else frozenset()
        at.verdict.changes.also += listing(store, path, found.providers | before | stored)


def note_feeds(at: Judgement, *, held: bool) -> None:
    """Whoever changes what the workspace has rendered is to find it. `held`: it is served with what it had before."""
    grounds, case = at.grounds, at.case
    before = feeds.noted(grounds.store, at.record.cluster) if case.record is not None else None
    if before is None and at.gathered.complete and not at.gathered.renders:
        return
    sources = grounds.site.sources
    rendered = sources.rendered(*case.content) if case.content is not None else ()
    if before is None and not rendered:
        return
    found = None
    if case.content is not None:
        found = feeds.fed_by(sources.renders.fingerprint, case.content, rendered, late=at.gathered.late)
    if held and before is not None:
        found = found.also(before) if found is not None else before
    if found != before:
        at.verdict.changes.also.append(feeds.note(at.record.cluster, found))


def seal(at: Judgement) -> None:
    """Last the row of record and summary: what marks the transaction as this workspace's."""
    record, before, changes = at.verdict.record, at.case.record, at.verdict.changes
    row = put_workspace(record, at.known.as_json())
    same = before is not None and record == replace(before, judged=record.judged)
    stored = at.grounds.store.get_row(row.table, row.row) if same else None
    if stored is not None and summary_in(Row(row.row, stored)) == summary_in(Row(row.row, row.value)):
        # That it was held by one more commit is news for nobody.
        changes.also += [row] if record != before else []
        return
    changes.also += listed(record, before)
    # What a commit changes is followed by its objects. Where a workspace is and whether it is served at all is news
    # by itself, and so is what nothing but its summary says.
    told = before is not None and any(_tells(record.cluster, op) for op in changes.ops())
    if before is None or not told or (before.served, before.directory) != (record.served, record.directory):
        changes.also.append(placed(record))
    changes.also.append(row)


def _tells(cluster: str, op: Op) -> bool:
    """Whether it is an object's by which whoever follows the workspace hears of it."""
    return isinstance(op, Put | Delete | Check) and (op.key.cluster == cluster or op.key.resource == WORKSPACES)


def _kept_secrets(at: Judgement) -> list[Op]:
    """Which Secrets of keys/ are served from now on."""
    if not at.case.secrets:
        return []
    said = kept(at.record.cluster, at.case.secrets)
    return [said] if at.grounds.store.get_row(said.table, said.row) != said.value else []


def _kept_keys(at: Judgement) -> list[Op]:
    """With which keys of keys/ its files were read. A store that shows them as they stand has none, and of one that was
    brought back although something is damaged nobody says so: it is judged again with the start."""
    if at.case.keys.shown or at.gathered.pardoned:
        return []
    said = kept_keys(at.record.cluster, at.case.keys)
    stands = at.grounds.store.get_row(said.table, said.row)
    return [said] if stands != (said.value if isinstance(said, PutRow) else None) else []

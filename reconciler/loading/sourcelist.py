"""Which sources are to be followed for the workspaces that are there, and which workspaces are to be judged again.

Called by whoever follows them (commands/sourcing). It follows from records alone: the source by which a workspace was
judged last, and the one that it is served from, where that is another one still.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from apiserver.model import commits
from apiserver.model.commits import CommitRef
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import View
from reconciler.layout.grafts import OF
from reconciler.layout.sourceref import PINNED, SourceRef
from reconciler.loading.remotes import UNKNOWN
from reconciler.loading.sourced import GRAFTED
from reconciler.repository.sourcerefs import source_name

_OF_SOURCE = ("spec.source: ", "spec.serve.commit: ")
"""What is said of a source itself, or of what it is pinned to, among errors."""


class ListedSource(NamedTuple):
    """`name`: of the source. `path`, `cluster`: of its workspace. `keep`: commits of it that are served, or that it is
    pinned to, or that are to be served once they are here, and the one by which there are workspaces below.
    `is_wanted`: it is the one by which the workspace was judged; else it is kept for what is served."""

    name: str
    path: str
    cluster: str
    ref: SourceRef
    keep: frozenset[str]
    is_wanted: bool = True


def listed(store: View) -> dict[str, ListedSource]:
    """All that are to be followed, by name."""
    grafts = tree.fleet(store).grafts
    found = [each for record in tree.sourced(store) for each in _of(store, record, grafts)]
    keep: dict[str, frozenset[str]] = {}
    for each in found:
        keep[each.name] = keep.get(each.name, frozenset()) | each.keep
    # Of two branches of one repository the one counts that is wanted.
    return {each.name: each._replace(keep=keep[each.name]) for each in sorted(found, key=lambda each: each.is_wanted)}


def _of(store: View, record: WorkspaceRecord, grafts: Mapping[str, Mapping[str, str]]) -> Iterator[ListedSource]:
    served, path = commits.parse(tree.summary(store, record.path).get("content") or ""), record.path
    for said, wanted in ((record.source, False), (record.follows, True)):
        ref, of = SourceRef.kept(said), said.get(OF, "")
        if ref is not None:
            name = source_name(of or record.cluster, ref.repository)
            grafted = commits.parse(grafts.get(of or record.cluster, {}).get("commit", ""))
            keep = frozenset(each.id for each in (served, grafted) if each and each.repository == name)
            keep |= {said[PINNED]} if PINNED in said else set()
            above = tree.workspace_of(store, of) if of else None
            if above is not None:  # whose the address and the Secret are
                path, ref = above.path, ref._replace(path="")
            yield ListedSource(name, path, of or record.cluster, ref, keep, wanted and not of)


def is_sourced(store: View, path: str) -> bool:
    """Whether a workspace was judged with a source, or is served from one."""
    record = tree.workspace_at(store, path)
    return record is not None and bool(record.source or record.follows)


Judged = dict[str, tuple[SourceRef, str]]
"""With which source, at which head, workspaces were judged last, by path. "" as head: it is to be judged again."""
_UNKNOWN = (SourceRef("", ""), "?")


def told_of(store: View, judged: Judged) -> None:
    """Forgets of whom it is known that are held for their source itself, or for what it takes of others: who may sign
    what is there, and take what, the fleet says, which is at another commit by now. Where that is held which stands in
    the source of another, that one is to be judged again."""
    for record in (tree.workspace_at(store, path) for path in tree.held(store)):
        if record is None or not (record.source or record.follows):
            continue
        of_source = any(text in error for error in record.errors for text in _OF_SOURCE)
        if not (of_source or tree.summary(store, record.path).get("trespasses")):
            continue
        above = tree.workspace_of(store, record.follows.get(OF, ""))
        if above is None:
            judged.pop(record.path, None)
        elif above.path in judged:
            judged[above.path] = judged[above.path][0], ""


def due(
    store: View, sources: Iterable[ListedSource], heads: dict[str, str], judged: Judged, *, lost: bool = False
) -> set[str]:
    """The workspaces for which a source has another head than that they were judged with, by `heads`; one that is
    pinned, and not held, follows none. `judged`: what is
    known of that, nothing after a start; completed by those that serve the head, and are not held. `lost`: only those
    of which nothing is served."""
    out = set[str]()
    for source in sources:
        head, record = heads.get(source.name, ""), tree.workspace_at(store, source.path)
        if record is None or not head or not source.is_wanted or judged.get(source.path) == (source.ref, head):
            continue
        if lost and record.served:
            continue
        serves, at = commits.parse(record.source.get("commit", "")), CommitRef(source.name, head)
        follows = serves != at and not record.pin
        goes_on = record.pin or record.follows.get(GRAFTED) == str(at)
        if record.served and not record.errors and not follows and goes_on and judged.get(source.path, _UNKNOWN)[1]:
            judged[source.path] = source.ref, head
        else:
            out.add(source.path)
    return out | _back(store, heads, judged)


def _back(store: View, heads: dict[str, str], judged: Judged) -> set[str]:
    """Those in another one's source of which nothing is served, or that wait for programs, and something is here. Once
    all sources are back, the others that a recovery could not bring back, once after a start: it may have ended before
    they heard of it."""
    out, held = set[str](), [tree.workspace_at(store, path) for path in tree.held(store)]
    lost = [record for record in held if record is not None and not record.served]
    waiting = [r for r in held if r is not None and r.served and any(UNKNOWN[0] in error for error in r.errors)]
    if tree.fleet(store).lost and not any(record.follows for record in lost):
        out = {record.path for record in lost if record.path not in judged}
        judged |= dict.fromkeys(out, _UNKNOWN)
    for record in (*lost, *waiting):
        path = record.path
        ref = SourceRef.kept(record.follows)
        if ref is None or OF not in record.follows:
            continue
        head = heads.get(source_name(record.follows[OF], ref.repository), "")
        if head and judged.get(path) != (ref, head):
            judged[path] = ref, head
            out.add(path)
    return out

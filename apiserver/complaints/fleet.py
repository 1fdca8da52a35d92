"""What is wrong with the fleet as a whole: what keeps it from being followed, recorded or told of.

Of the store alone. The words are those that the reconciler's process told when it met the trouble
(reconciler/controllers/fleetcondition), with the times that it keeps beside them (registry/looks).
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.complaints.complaint import Complaint, ComplaintBatch, ComplaintKind, cut, said
from apiserver.model import clock
from apiserver.model.commits import shortened
from apiserver.registry import announced, looks, tree
from apiserver.storage.protocol import View

_PATIENCE = 10.0
"""Seconds that a commit may be on its way before it is a complaint."""
_ID = 10
WHOLE = "the fleet"
_KINDS = {
    "Observing": ComplaintKind.OBSERVER,
    "Held": ComplaintKind.FLEET,
    "Unreadable": ComplaintKind.LAG,
    "RemoteAway": ComplaintKind.REMOTE,
    "StatusBranchDiverged": ComplaintKind.STATUS_BRANCH,
    "StatusBranchRefused": ComplaintKind.STATUS_BRANCH,
    "NotRecorded": ComplaintKind.STATUS_BRANCH,
}
"""By the kind of trouble as the store has it. One of a later program's is told all the same."""
_COMMANDS = {
    ComplaintKind.FLEET: said("treeplane", "validate"),
    ComplaintKind.LAG: said("treeplane", "reconcile-now"),
    ComplaintKind.REMOTE: said("treeplane", "reconcile-now"),
    ComplaintKind.STATUS_BRANCH: said("treeplane", "reconcile-now"),
}


def of_fleet(view: View, now: float) -> Iterator[ComplaintBatch]:
    record = tree.fleet(view)
    if not record.loaded:
        yield ComplaintBatch.of([_loading(record)])
    for kind, text in sorted(tree.troubles(view).items()):
        yield ComplaintBatch.of([_trouble(view, kind, text, now)])
    yield ComplaintBatch.of(_lag(view, record, now))
    failing = sorted(announced.failing(view).items())
    yield ComplaintBatch.of(Complaint(ComplaintKind.TELLING, who, cut(text)) for who, text in failing if text)


def _loading(record: tree.FleetRecord) -> Complaint:
    """Also where nothing was begun: a repository without the branch, or one that was never seen."""
    far = f"{record.done} of {record.total} workspaces are loaded" if record.total else "nothing is loaded yet"
    why = f": {record.error}" if record.error else ""
    return Complaint(ComplaintKind.LOADING, WHOLE, cut(f"the first load is not complete, {far}{why}"))


def _trouble(view: View, name: str, text: str, now: float) -> Complaint:
    kind = _KINDS.get(name, ComplaintKind.FLEET)
    if kind is ComplaintKind.REMOTE and (away := looks.away(view)) is not None:
        again = f"it is asked again at {clock.rfc3339(away.again)}" if away.again > now else "it is being asked again"
        text = f"no answer since {clock.rfc3339(away.since)}, {again}: {text}"
    return Complaint(kind, WHOLE, cut(text), _COMMANDS.get(kind, ""))


def _lag(view: View, record: tree.FleetRecord, now: float) -> Iterator[Complaint]:
    """A commit that is held as a whole, or cannot be loaded, is told of as that."""
    waits = looks.waiting(view)
    if waits is None or waits.head == record.commit.id or {"Held", "Unreadable"} & tree.troubles(view).keys():
        return
    if not record.loaded or now - waits.since < _PATIENCE:
        return
    way = [shortened(str(commit), _ID) for commit in record.arriving]
    what = f"commit {waits.head[:_ID]} was seen at {clock.rfc3339(waits.since)} and is not served yet"
    what += f", {shortened(str(record.commit), _ID)} is"
    if way:
        what += f"; on its way into the store: {', '.join(way)}"
    yield Complaint(ComplaintKind.LAG, WHOLE, cut(what), said("treeplane", "reconcile-now"))

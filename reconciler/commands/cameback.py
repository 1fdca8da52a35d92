"""What a server says that has filled its store from the repository of a fleet which was served before: what came back,
what did not, what is different now, who holds the fleet, and what to do.

Called by the reconciler's process, once, after such a load. It costs what the load cost, and less.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.model import clock
from apiserver.model.counts import counted, some_of
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Store
from reconciler.commands.settings import ReconcileSettings
from reconciler.drilling.keysneeded import NeededKey, needed
from reconciler.layout.fleet import UNSIGNED, read_fleet
from reconciler.repository.objects import Repository
from reconciler.review.telling.harmless import plain
from reconciler.statusbranch.recorded import RecordedFleet

_STORE = "Store"
_MOST, _LINES = 5, 20
_OF_SERVER = frozenset({"ca.key", "service-accounts.key", "commits"})
"""Made with a server, so they are there: old ones, or new."""


def came_back(
    store: Store, repo: Repository, recorded: RecordedFleet, settings: ReconcileSettings, holder: str = ""
) -> str:
    """`holder`: another server that holds the fleet, "" where this one does."""
    return "\n".join(map(plain, _lines(store, repo, recorded, settings, holder)))


def _lines(
    store: Store, repo: Repository, recorded: RecordedFleet, settings: ReconcileSettings, holder: str
) -> Iterator[str]:
    info, held = repo.commit(recorded.commit.id), len(tree.held(store))
    of = counted(tree.count(store), "workspace") + (f", {held} of them held" if held else "")
    yield f"recovered from the repository: {of}, as its status branch had them at {clock.rfc3339(info.time)}"
    writes = tree.fleet(store).writes
    records = (WorkspaceRecord.decode(*row) for row in rows(store, Table.WORKSPACES))
    unrecorded = [record.path for record in records if (record.writes or writes) == _STORE]
    if unrecorded:
        yield f"  not back: what was made through the API in {some_of(unrecorded, _MOST)}, but for what a backup had"
    yield "  not back: Events, Leases and other runtime objects"
    missing = [*_missing(store, repo, recorded, settings)]
    for each in missing[:_LINES]:
        of = f" ({some_of(each.of, _MOST)})" if each.of else ""
        yield f"  not back: {settings.keys_dir / each.place}: {each.what}{of}; put it there from a backup of keys/"
    if len(missing) > _LINES:
        yield f"  not back: {len(missing) - _LINES} more of keys/; treeplane drill names all"
    if settings.new_keys:
        yield (
            f"  different: {settings.keys_dir} is new, with a CA of its own: kubeconfigs, clones and tokens of before "
            "are refused. Hand out new ones (treeplane kubeconfig); or stop, put the old keys/ there, and start again"
        )
    if holder:
        yield f"  {holder} holds the fleet: this server only observes"
    else:
        yield "  this server holds the fleet"
    yield "  what is wrong now: treeplane status"


def _missing(
    store: Store, repo: Repository, recorded: RecordedFleet, settings: ReconcileSettings
) -> Iterator[NeededKey]:
    signed = read_fleet(repo, repo.commit(recorded.source.id).tree).verification != UNSIGNED
    for each in needed(store, settings.keys_dir, signed=signed):
        if each.place not in _OF_SERVER and each.there is not True:
            yield each

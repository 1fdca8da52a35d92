"""A recovery into a store that is thrown away, and the status branch that would be written of what it brought back.

Called by the drill. Loaded is by the server's own loader, recorded by its own rendering. No commit after the recorded
one is followed: what is served then is what was recorded, or the recovery is none. No controller runs, no port is
opened, nobody is asked for anything, and what stands in keys/ is only read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from apiserver.model.commits import own
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.drilling.comparison import MADE, RecordDifference, compared
from reconciler.drilling.freshclone import FreshClone, NothingRecorded
from reconciler.drilling.keysneeded import NeededKey, needed
from reconciler.layout.fleet import UNSIGNED, read_fleet
from reconciler.layout.sourceref import SourceRef
from reconciler.loading.consumers import taken
from reconciler.loading.heads import BranchSettings
from reconciler.loading.identities import IdentitiesAside
from reconciler.loading.loader import Loader
from reconciler.loading.remotes import Remotes
from reconciler.loading.secrets import SecretFiles
from reconciler.loading.vouching import Vouching
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecords
from reconciler.repository.repositories import Repositories
from reconciler.repository.write import edit_tree
from reconciler.saving.puttingback import PuttingBack
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import DIRECTORY, Signers
from reconciler.signatures.verifier import NotVerified, Verifier
from reconciler.statusbranch import fleetfacts, format
from reconciler.statusbranch.content import StatusContent
from reconciler.statusbranch.recorded import FleetFacts
from reconciler.statusbranch.render import Rendering

_STORE = "Store"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """`differences`: see comparison. `lost`: workspaces that were served and could not be brought back, and why.
    `elsewhere`: workspaces that come back once the repository is fetched that their content comes from, and which that
    is. `held`: how many are held, as they were. `workspaces`: how many there are. `unrecorded`: those in which objects
    are made through the API that nothing but the store has. `seconds`: of loading, and of rendering with the
    comparison. `with_keys`: whether keys were given. `signed`: whether the fleet asks for signatures, which keys tell.
    `ours`: whether the key of those that were given signed the status commit; None: there is no such key. `restored`:
    what is said of what a backup had of the store, "" without one."""

    differences: tuple[RecordDifference, ...]
    lost: dict[str, tuple[str, ...]]
    elsewhere: dict[str, str]
    held: int
    workspaces: int
    unrecorded: tuple[str, ...]
    keys: tuple[NeededKey, ...]
    seconds: tuple[float, float]
    with_keys: bool = False
    signed: bool = False
    ours: bool | None = None
    restored: str = ""

    @property
    def unchecked(self) -> bool:
        """Whether signatures were to be looked at, and nothing was there to do it by."""
        return self.signed and not self.with_keys


@dataclass(frozen=True, slots=True)
class KeptAside:
    """What there is beside the repository. `keys`: a copy of the server's keys/, None: there is none. `store`: the
    directory with what only its store had, None: there is none. `unpushed`: see FreshClone. `fleet`: whose it is, ""
    where that is not known."""

    keys: Path | None = None
    store: Path | None = None
    unpushed: Path | None = None
    fleet: str = ""


def rehearse(clone: FreshClone, branch: str, beside: KeptAside, scratch: Path, renders: Renders = NOWHERE) -> Rehearsal:
    """`branch`: the desired branch's name. `renders`: for directories that are rendered. Raises NothingRecorded where
    nothing of it can be served, RepositoryError, KeysError for a key that cannot be read, and BadBackup."""
    keys = beside.keys
    began = time.monotonic()
    store = open_at(scratch / "store", sync=False)
    try:
        identities = IdentitiesAside((keys or scratch) / "identities")
        secrets = SecretFiles(keys).of if keys is not None else lambda _: ()
        settings = _settings(branch, keys)
        putting = PuttingBack(beside.store, store) if beside.store is not None else None
        if putting is not None:
            putting.begin()
        _load(clone, Loader(store, Repositories(clone.repo), identities, secrets, settings, renders=renders))
        loaded = time.monotonic()
        config = read_fleet(clone.repo, clone.repo.commit(clone.recorded.source.id).tree)
        signed = config.verification != UNSIGNED
        lost = dict(_lost(store))
        differences = tuple(_differences(clone, store, lost))
        elsewhere = dict(_elsewhere(store, lost))
        done = time.monotonic()
        writes = tree.fleet(store).writes
        records = [WorkspaceRecord.decode(*row) for row in rows(store, Table.WORKSPACES)]
        return Rehearsal(
            differences,
            {path: why for path, why in lost.values() if path not in elsewhere},
            elsewhere,
            len(tree.held(store)) - len(lost),
            len(records),
            tuple(record.path for record in records if (record.writes or writes) == _STORE),
            needed(store, keys, signed=signed),
            (loaded - began, done - loaded),
            with_keys=keys is not None,
            ours=_is_ours(clone, keys),
            signed=signed,
            restored=putting.came_back() if putting is not None else "",
        )
    finally:
        store.close()


def _settings(branch: str, keys: Path | None) -> BranchSettings:
    """As a start has them. Without keys nobody can say whose signature is good."""
    if keys is None:
        return BranchSettings(name=branch)
    verifier = Verifier(CommitKey.known(keys))
    return BranchSettings(name=branch, vouching=Vouching(PushRecords(None), verifier, keys / DIRECTORY))


def _is_ours(clone: FreshClone, keys: Path | None) -> bool | None:
    """What a record says by itself without a contradiction no loading can tell from what the server wrote."""
    key = CommitKey.known(keys) if keys is not None else None
    if key is None:
        return None
    try:
        return Verifier(key).signer(clone.repo, clone.recorded.commit.id, Signers()).ours
    except NotVerified:
        return False


def _load(clone: FreshClone, loader: Loader) -> None:
    loader.steppers.remotes = Remotes(lambda _, __: "")  # what comes from other repositories waits for them
    begun = loader.begin(own(clone.head), clone.recorded)
    if begun.problems:
        raise NothingRecorded(f"nothing would be served: {begun.problems[0]}", "see docs/recovery.md")


def _elsewhere(store: Store, lost: dict[str, tuple[str, tuple[str, ...]]]) -> Iterator[tuple[str, str]]:
    """Of those that were not brought back, which wait for a tenant's repository: their own, or that of a workspace of
    which they take something."""
    away = {path: ref for path, _ in lost.values() if (ref := _source(store, path)) is not None}
    yield from ((path, str(ref)) for path, ref in away.items())
    for path, _ in lost.values():
        providers = {provider for provider, _ in taken(store, path)} & away.keys() if path not in away else ()
        yield from ((path, f"{away[provider]}, of {provider}") for provider in sorted(providers)[:1])


def _source(store: Store, path: str) -> SourceRef | None:
    record = tree.workspace_at(store, path)
    return SourceRef.kept(record.follows) if record is not None else None


def _lost(store: Store) -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """By their folders on the branch: path, and why."""
    folders = Rendering(store).lost()
    for path in tree.held(store):
        record = tree.workspace_at(store, path)
        folder = format.directory_of(path, record.directory) if record is not None else ""
        if record is not None and folder in folders:
            yield folder, (path, tuple(record.errors))


def _differences(
    clone: FreshClone, store: Store, lost: dict[str, tuple[str, tuple[str, ...]]]
) -> Iterator[RecordDifference]:
    known = clone.recorded.facts()
    made = _rendered(clone.repo, store, known)
    spared = _rendered(clone.repo, store, known, sparing=True) if known.arriving else ""
    for each in compared(clone.repo, clone.recorded.tree, made):
        if format.owner_of(each.file) not in lost and not (spared and _is_on_its_way(clone.repo, spared, each)):
            yield each


def _is_on_its_way(repo: Repository, spared: str, found: RecordDifference) -> bool:
    """Whether that is none, in what was recorded while commits were being loaded. A workspace that came with these may
    have been left out, since a recovery makes it of its commit; and one that is held at the commit that is named, and
    at a later one for something else, says the latter, which is found out anew when that commit is followed."""
    if found.what == MADE:
        return repo.entry_at(spared, found.file) is None
    reasons = {field.partition("[")[0] for field in found.fields}
    return found.file.endswith(f"/{format.SUMMARY}") and reasons == {"errors"}


def _rendered(repo: Repository, store: Store, known: FleetFacts, *, sparing: bool = False) -> str:
    """The tree of the status commit that this store gives. Its revisions are another store's, and when the history
    began no store knows: so these are as they were."""
    content, rendering = StatusContent(repo, None), Rendering(store, sparing=sparing)
    content.add(rendering.everything())
    fleet = tree.fleet(store)
    facts = fleetfacts.of_store(store, fleet, known, repo.folders)
    facts = replace(facts, arriving=fleet.arriving, admitted=fleet.admitted)
    return edit_tree(repo, content.tree(), {format.FLEET: format.dump(facts.as_file())})

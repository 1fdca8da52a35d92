"""One workspace at one commit: is its content good, and what does it write?

Called by steps for each workspace that a commit touches. A bad workspace keeps what it serves; the verdict then only
says so (its record, the conditions of its Workspace object). Nothing here writes to the store.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from apiserver.model import clock, paths
from apiserver.model.commits import NONE
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Key, storage_name
from apiserver.model.kinds import kind_of
from apiserver.model.origins import BOOTSTRAP, SHIPPED, TYPED
from apiserver.model.tables import Table, row_key
from apiserver.registry import codec
from apiserver.registry.catalog import KEPT_SCHEMAS
from apiserver.registry.kinds import KUBERNETES, builtins_of, workspace_builtins
from apiserver.registry.tree import WorkspaceRecord, placed, put_summary, put_workspace, summary
from apiserver.storage.protocol import Op, Put, PutRow, Record, RowOp, Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import manifests
from reconciler.loading.case import Case, Recorded, Verdict, was_served
from reconciler.loading.content import Content, Contents
from reconciler.loading.copies import PLACES
from reconciler.loading.effects import Effects
from reconciler.loading.gather import Gathered, Gatherer
from reconciler.loading.guard import Guard, Taken
from reconciler.loading.offers import SCHEMAS, Offers
from reconciler.loading.providing import Providing
from reconciler.loading.ratcheting import accepted
from reconciler.loading.resolving import BINDINGS, CRDS, said_otherwise, waiting
from reconciler.loading.secrets import kept
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.sources import generated
from reconciler.loading.statuses import status_of
from reconciler.loading.treeobjects import TreeObjects
from reconciler.loading.workspacetype import type_of
from reconciler.loading.world import PROVIDED, World
from reconciler.plan import apis, bootstrap, computed, system, types
from reconciler.plan.bindings import Said
from reconciler.plan.deletions import SHARE_FROM, Refused
from reconciler.plan.merge import merged
from reconciler.plan.residue import restore, restored_ending
from reconciler.plan.summary import Summary

Object = dict[str, Any]


class Judge:
    """Judges workspaces of one step. `guard` None: nothing is served yet that could be lost."""

    def __init__(self, site: Site, world: World, served: ServedTrees, guard: Guard | None = None) -> None:
        self._guard = guard
        self._site = site
        self._served = served
        self._world = world
        self._gatherer = Gatherer(site.sources)
        # None of these holds the judge, which holds all that a step read: it goes with the step.
        self._stored = partial(_stored, site.store)
        self._own_identity = partial(_own_identity, site)
        self._tree_objects = TreeObjects(site.moments, world.record, self._stored)
        self._contents = Contents(world, site.catalog, self._own_identity)

    def judge(self, case: Case) -> Verdict:
        """The verdict on one workspace. The step's world already shows its parent as it will be."""
        base = self._served.of(case.record) if case.record is not None else None
        if self._is_exceptional(case):
            case = case._replace(forced=True)
        gathered = self._gatherer.gather(case, base)
        typed = type_of(self._world, case, gathered)
        kind = typed.kind
        gathered.problems.extend((*case.problems, *typed.problems))
        record = self._identity(case, kind)
        mode = record.writes if record.served else kind.writes
        gathered.accepted = accepted(case, gathered, mode or self._site.writes)
        content = self._contents.examine(case, record, gathered, _brought(record, kind))
        if content.apis is not None and record.served and case.recorded is None:
            content.problems += Providing(self._site.store, record.cluster, content).problems()
        known = self._summary(case, record)
        refused = None if content.problems else self._losses(case, record, known, gathered, content)
        if refused is not None:
            content.problems.append(LayoutError(record.directory or case.path, 0, 0, str(refused)))
        if content.problems and not gathered.complete:
            # All errors with their lines, the same ones whenever somebody looks.
            return self.judge(case._replace(forced=True))
        if case.recorded is None and not typed.problems:
            typed.tell(known)
        if content.problems:
            held = self._hold(case, record, known, gathered, content)
            held.refused = refused
            return held
        if record.writes != kind.writes:
            record = replace(record, writes=kind.writes)
        return self._accept(case, record, known, gathered, content)

    def _losses(
        self, case: Case, record: WorkspaceRecord, known: Summary, gathered: Gathered, content: Content
    ) -> Refused | None:
        """What of what the commit takes away has to be allowed first."""
        if self._guard is None or case.recorded is not None or not record.served:
            return None
        edited = self._edited(content)
        if not content.removed and not edited:
            return None
        # Of how many is known only once all files are read, and matters only for many.
        total = len(content.old) + len(content.removed) if gathered.complete else 0
        if not gathered.complete and len(content.removed) < SHARE_FROM:
            total = SHARE_FROM * len(content.removed)
        return self._guard.problem(record, Taken(content.removed, edited, total, content.kinds), known)

    def _edited(self, content: Content) -> dict[Key, Object]:
        """What decides where copies are, as it will be where it is edited."""
        changed = [k for k, d in content.declared.items() if k.resource in PLACES and content.old.get(k) is not d.obj]
        out = {}
        for key, record in self._stored(changed).items():
            out[key] = merged(content.old.get(key), content.declared[key].obj, orjson.loads(record.value))
        return out

    def _is_exceptional(self, case: Case) -> bool:
        """Whether what is served follows from more than the commit it is served at, so that files which do not change
        may have something to say: a workspace that is held, and one that keeps what its providers offered once."""
        if case.record is None:
            return False
        return bool(case.record.errors) or bool(summary(self._site.store, case.record.cluster).get("bindings"))

    def _identity(self, case: Case, kind: types.ResolvedType) -> WorkspaceRecord:
        """The record as it is, or that of a workspace which appears now (or, at recovery, appeared then). Until a
        workspace is served, it has the type that it would have."""
        if case.record is not None:
            if case.record.served:
                return case.record
            return replace(case.record, type=str(kind.ref), builtins=kind.builtins, writes=kind.writes)
        origin = case.recorded.summary.origin if case.recorded else case.moment.commit
        moment = self._site.moments.at(origin, case.moment.time)
        return WorkspaceRecord(
            path=case.path,
            cluster=logical_cluster_name(self._site.fleet, case.path, origin),
            parent=paths.parent(case.path) or "",
            type=str(kind.ref),
            builtins=kind.builtins,
            writes=kind.writes,
            served=False,
            origin=origin,
            origin_time=moment.time,
            directory=case.directory.directory if case.directory else "",
        )

    def offers(self, case: Case) -> Offers:
        """What a workspace provides as its manifests say, none of it judged."""
        record = self._identity(case, types.ResolvedType(types.TypeRef(*types.DEFAULT)))
        found = generated(system.manifests(case.path), SHIPPED)
        if case.directory is not None:
            found.extend(manifests(self._site.sources.of(case.tree, case.directory)))
        effects = self._effects(case, self._summary(case, record))

        def uid(key: Key) -> str:
            stored = self._site.store.get(key)
            return str(orjson.loads(stored.value)["metadata"]["uid"]) if stored else effects.uid_of_new(key)

        def identity(name: str) -> str:
            return self._own_identity(case, name)

        return Offers(case.path, record.cluster, workspace_builtins(), found, identity, uid)

    def refuse(self, case: Case) -> Verdict:
        """The verdict where judging itself failed: the workspace stays as it is, and says so."""
        problem = LayoutError(case.path, 0, 0, "could not be judged: an error inside Treeplane, see its log")
        record = case.record or self._identity(case, types.ResolvedType(types.TypeRef(*types.DEFAULT)))
        known = self._summary(case, record)
        verdict = self._held(case, record, known, [problem])
        verdict.fault = True
        self._seal(case, verdict, known)
        return verdict

    # -- bad ---------------------------------------------------------------------------------------------------------

    def _hold(
        self, case: Case, record: WorkspaceRecord, known: Summary, gathered: Gathered, content: Content
    ) -> Verdict:
        verdict = self._held(case, record, known, sorted(set(content.problems)))
        effects = self._effects(case, known)
        self._tree_objects.put(case, verdict.record, gathered, effects)
        verdict.ops = effects.ops
        if content.apis is not None:
            self._remember_providers(case, content.apis, verdict)
        self._seal(case, verdict, known)
        return verdict

    def _held(self, case: Case, record: WorkspaceRecord, known: Summary, problems: list[LayoutError]) -> Verdict:
        """What is said of a workspace that stays as it is; `known` is completed. One that was served before a recovery
        and cannot be brought back is not served for now: what the status branch knows of it stays as it is."""
        if was_served(case.recorded):
            text = "was served, and cannot be brought back"
            problems = [LayoutError(p.path, p.line, p.column, f"{text}: {p.message}", p.hint) for p in problems]
            return Verdict(replace(record, served=False, errors=[str(p) for p in problems]), problems=problems)
        held = replace(record, errors=[str(p) for p in problems])
        known.served, known.errors = record.head if record.served else NONE, held.errors
        if not known.held:
            known.held = case.moment.commit
            known.before = self._guard.before_held(known.held) if self._guard is not None else NONE
            known.claims = self._served.claims(record) if record.served else {}
        # What it is served with follows from the past alone, whatever its providers do meanwhile.
        statuses = self._binding_statuses(record) if record.served else {}
        known.bindings = {name: Said.of(status).as_json() for name, status in statuses.items()}
        return Verdict(held, problems=problems)

    def _binding_statuses(self, record: WorkspaceRecord) -> dict[str, Object]:
        found = self._site.store.scan(BINDINGS, record.cluster).records
        return {r.key.name: orjson.loads(r.value).get("status") or {} for r in found}

    # -- good --------------------------------------------------------------------------------------------------------

    def _accept(
        self, case: Case, record: WorkspaceRecord, known: Summary, gathered: Gathered, content: Content
    ) -> Verdict:
        if case.recorded is None:
            known.served, known.held, known.before, known.claims, known.errors = None, NONE, NONE, {}, []
        if case.recorded is None and content.apis is not None:
            known.bindings = said_otherwise(content.apis.bindings, content.apis)
            known.waiting = waiting(content.apis)
        effects = self._effects(case, known)
        records = {} if case.appears else self._stored([*content.declared, *content.removed])
        for key in content.removed:
            effects.delete(key, records.get(key))
            self._delete_all_of(key, records.get(key), content, effects)
            self._keep_for_consumers(case.path, records.get(key), effects)
        if case.recorded is not None:
            self._restore_endings(case.recorded, record.cluster, content, effects)
        for key, declared in content.declared.items():
            stored = records.get(key)
            status = status_of(self._site.identities, case, declared, stored, content, effects)
            if case.recorded is not None and stored is None:
                restore(declared.obj, case.recorded.residue(key) or {})
            effects.put(declared, content.old.get(key), stored, status)
        own = effects.changed
        if own or not record.served:
            known.commit = known.commit if case.recorded else case.moment.commit
        served = replace(
            record,
            served=True,
            errors=known.errors,
            commit=known.commit,
            head=case.moment.commit if effects.ops else record.head,
            directory=case.directory.directory if case.directory else "",
        )
        self._tree_objects.put(case, served, gathered, effects)
        if gathered.complete:
            effects.ops += self._kept_secrets(case, record.cluster)
        verdict = Verdict(served, effects.ops, changed=own)
        verdict.provides = any(key.resource in PROVIDED for key in _keys(effects.ops))
        if served.head != case.moment.commit and (effects.ops or served != case.record):
            verdict.record = replace(served, head=case.moment.commit)
        if content.apis is not None:
            self._remember_providers(case, content.apis, verdict)
        self._seal(case, verdict, known)
        return verdict

    def _kept_secrets(self, case: Case, cluster: str) -> list[Op]:
        """Which Secrets of keys/ are served from now on."""
        if not case.secrets:
            return []
        said = kept(cluster, case.secrets)
        return [said] if self._site.store.get_row(said.table, said.row) != said.value else []

    def _restore_endings(self, recorded: Recorded, cluster: str, content: Content, effects: Effects) -> None:
        """What no file declares any more and still waits for its finalizers."""
        for left in recorded.endings():
            kind = content.kinds.by_kind(*kind_of(left))
            if kind is None:
                continue  # nobody could see it
            key = Key(kind.storage, cluster, left["metadata"].get("namespace", ""), left["metadata"]["name"])
            if key not in content.declared:
                effects.ops.append(Put(key, codec.encode(restored_ending(left, cluster))))

    def _delete_all_of(self, key: Key, record: Record | None, content: Content, effects: Effects) -> None:
        """With a CRD or a binding go the objects of its kinds that git does not know of."""
        if record is None or key.resource not in (CRDS, BINDINGS):
            return
        known = {*content.removed, *content.declared}
        for resource in _storages(key, record) - {kind.storage for kind in content.kinds.all()}:
            for left in self._site.store.scan(resource, key.cluster).records:
                if left.key not in known:
                    effects.delete(left.key, left)

    def _keep_for_consumers(self, path: str, record: Record | None, effects: Effects) -> None:
        """A provider that takes a schema away breaks nobody who is bound to it."""
        if record is not None and record.key.resource == SCHEMAS and self._world.consumers(path):
            effects.ops.append(Put(record.key._replace(resource=KEPT_SCHEMAS), record.value))

    def _former(self, key: Key) -> Object | None:
        """A schema that is put back while others are served with it is the one that went."""
        record = self._site.store.get(key._replace(resource=KEPT_SCHEMAS)) if key.resource == SCHEMAS else None
        if record is None:
            return None
        metadata = orjson.loads(record.value)["metadata"]
        return {"metadata": {name: metadata[name] for name in ("uid", "creationTimestamp")}}

    def _remember_providers(self, case: Case, found: apis.Apis, verdict: Verdict) -> None:
        for path, export in found.providers:
            row = row_key(path, export, case.path)
            if self._site.store.get_row(Table.CONSUMERS, row) is None:
                verdict.ops.append(PutRow(Table.CONSUMERS, row, b""))

    # -- both --------------------------------------------------------------------------------------------------------

    def _summary(self, case: Case, record: WorkspaceRecord) -> Summary:
        return _known(self._site.store, case) or Summary(record.origin, record.commit or record.origin)

    def _effects(self, case: Case, known: Summary) -> Effects:
        return Effects(
            self._site.fleet,
            case.path,
            case.moment,
            self._site.moments,
            known,
            recorded=case.recorded.residue if case.recorded is not None else None,
            former=self._former,
            intents=case.intents,
            proposed=case.proposed,
        )

    def _seal(self, case: Case, verdict: Verdict, known: Summary) -> None:
        """The summary and, last, the record: what marks the transaction as this workspace's."""
        record, before = verdict.record, case.record
        text = bytes(memoryview(orjson.dumps(known.as_json())))
        said = put_summary(record.cluster, text)
        if record == before and self._site.store.get_row(said.table, said.row) == text:
            return
        # What a commit changes is followed by its objects. Where a workspace is and whether it is served at all is news
        # by itself, and so is what nothing but its summary says.
        told = any(key.cluster == record.cluster or key.resource == computed.WORKSPACES for key in _keys(verdict.ops))
        if before is None or not told or (before.served, before.directory) != (record.served, record.directory):
            verdict.ops.append(placed(record))
        verdict.ops += [said, put_workspace(record)]


def _keys(ops: list[Op]) -> list[Key]:
    """Of the objects that are written."""
    return [op.key for op in ops if not isinstance(op, RowOp)]


def _stored(store: Store, keys: list[Key]) -> dict[Key, Record]:
    return {k: r for k, r in zip(keys, store.get_many(keys), strict=True) if r is not None}


def _own_identity(site: Site, case: Case, export: str) -> str:
    known = _known(site.store, case)
    return site.identities.hash_of(case.path, export, known.identities.get(export, "") if known else "")


def _known(store: Store, case: Case) -> Summary | None:
    if case.recorded is not None:
        return Summary.from_json(case.recorded.summary.as_json())
    found = summary(store, case.record.cluster) if case.record is not None else {}
    return Summary.from_json(found) if found else None


def _brought(record: WorkspaceRecord, kind: types.ResolvedType) -> list[Manifest]:
    """What the workspace has for being of its type: default bindings, and what a cluster of Kubernetes starts with."""
    bindings = (computed.default_binding(record.cluster, path, name) for path, name in kind.bindings)
    found = generated(bindings, TYPED)
    if record.builtins == KUBERNETES:
        started = bootstrap.objects(builtins_of(record.builtins).groups(), clock.rfc3339(record.origin_time))
        found += generated(started, BOOTSTRAP)
    return found


def _storages(key: Key, record: Record) -> set[str]:
    """The store's names of the resources that a CRD or an APIBinding serves."""
    if key.resource == CRDS:
        return {key.name}
    status = orjson.loads(record.value).get("status") or {}
    bound = status.get("boundResources") or ()
    return {storage_name(b["group"], b["resource"], b["schema"]["identityHash"]) for b in bound}

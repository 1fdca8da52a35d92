"""One workspace at one commit: is its content good, and what does it write?

Called by steps for each workspace that a commit touches. A bad workspace keeps what it serves; the verdict then only
says so (its record, the conditions of its Workspace object). Nothing here writes to the store.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import orjson

from apiserver.model import clock, paths
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Key, storage_name
from apiserver.model.kinds import kind_of
from apiserver.registry import codec
from apiserver.registry.catalog import KEPT_SCHEMAS, Catalog
from apiserver.registry.kinds import KUBERNETES, builtins_of
from apiserver.registry.tree import WorkspaceRecord, cluster_key, summary, summary_key, workspace_key
from apiserver.storage.protocol import Note, Put, Record, Store
from reconciler.layout.errors import LayoutError
from reconciler.loading.case import Case, Recorded, Verdict
from reconciler.loading.content import BINDINGS, CRDS, Content, Contents
from reconciler.loading.effects import Effects
from reconciler.loading.gather import Gathered, Gatherer
from reconciler.loading.identities import Identities
from reconciler.loading.moment import Moments
from reconciler.loading.ratcheting import accepted
from reconciler.loading.sources import Sources, shipped
from reconciler.loading.statuses import status_of
from reconciler.loading.treeobjects import TreeObjects
from reconciler.loading.trees import Trees
from reconciler.loading.world import CONSUMERS, PROVIDED, SCHEMAS, World
from reconciler.plan import apis, bootstrap, computed, types
from reconciler.plan.residue import restore, restored_ending
from reconciler.plan.summary import Summary

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """What judging stands on, the same for every workspace of a fleet. `writes`: the mode of those whose type says
    none."""

    fleet: str
    writes: str
    store: Store
    sources: Sources
    trees: Trees
    moments: Moments
    identities: Identities
    catalog: Catalog


class Judge:
    """Judges workspaces of one step. `fresh`: the store holds nothing yet, so nothing needs to be looked up in it."""

    def __init__(self, site: Site, world: World, *, fresh: bool = False) -> None:
        self._site = site
        self._world = world
        self._fresh = fresh
        self._gatherer = Gatherer(site.sources)
        self._tree_objects = TreeObjects(site.moments, world.record, self._stored)
        self._contents = Contents(world, site.catalog, site.sources, self._own_identity)

    def judge(self, case: Case) -> Verdict:
        """The verdict on one workspace. The step's world already shows its parent as it will be."""
        base = self._site.trees.at(case.record.head) if case.record and case.record.head else None
        gathered = self._gatherer.gather(case, base)
        kind = self._world.type_of(gathered.workspace.value if gathered.workspace else None, case.path)
        gathered.problems.extend(case.problems)
        gathered.problems.extend(self._type_problems(case, gathered, kind))
        record = self._identity(case, kind)
        gathered.accepted = accepted(case, gathered, kind.writes or self._site.writes)
        content = self._contents.examine(case, record, gathered, shipped(_brought(record, kind)))
        if content.problems and not gathered.complete:
            # All errors with their lines, the same ones whenever somebody looks.
            return self.judge(case._replace(forced=True))
        if content.problems:
            return self._hold(case, record, gathered, content)
        if record.writes != kind.writes:
            record = replace(record, writes=kind.writes)
        return self._accept(case, record, gathered, content)

    def _identity(self, case: Case, kind: types.ResolvedType) -> WorkspaceRecord:
        """The record as it is, or that of a workspace which appears now (or, at recovery, appeared then). Until a
        workspace is served, it has the type that it would have."""
        if case.record is not None:
            if case.record.served:
                return case.record
            return replace(case.record, type=str(kind.ref), builtins=kind.builtins, writes=kind.writes)
        origin = case.recorded.summary.origin if case.recorded else case.moment.id
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

    def _type_problems(self, case: Case, gathered: Gathered, kind: types.ResolvedType) -> list[LayoutError]:
        manifest = gathered.workspace
        path, line = (manifest.path, manifest.line) if manifest else (case.path, 0)
        if kind.error and case.path != paths.ROOT:
            return [LayoutError(path, line, 0, kind.error, "correct spec.type, or declare the WorkspaceType")]
        if case.record is not None and case.record.served and case.record.type != str(kind.ref):
            text = f"spec.type is immutable: it is {case.record.type}, not {kind.ref}"
            return [LayoutError(path, line, 0, text, "recreate the workspace in two commits")]
        return []

    def refuse(self, case: Case) -> Verdict:
        """The verdict where judging itself failed: the workspace stays as it is, and says so."""
        problem = LayoutError(case.path, 0, 0, "could not be judged: an error inside Treeplane, see its log")
        record = case.record or self._identity(case, types.ResolvedType(types.TypeRef(*types.DEFAULT)))
        record = replace(record, errors=[str(problem)])
        verdict = Verdict(record, problems=[problem])
        known = self._summary(case, record)
        known.served, known.errors = record.head if record.served else "", record.errors
        known.held = known.held or case.moment.id
        self._seal(case, verdict, known)
        return verdict

    # -- bad ---------------------------------------------------------------------------------------------------------

    def _hold(self, case: Case, record: WorkspaceRecord, gathered: Gathered, content: Content) -> Verdict:
        problems = sorted(set(content.problems))
        texts = [str(p) for p in problems]
        held = replace(record, errors=texts)
        known = self._summary(case, record)
        known.served, known.errors = record.head if record.served else "", texts
        known.held = known.held or case.moment.id
        known.bound = self._bound_still(record, case.path, content) if record.served else {}
        verdict = Verdict(held, problems=problems)
        effects = self._effects(case, known)
        self._tree_objects.put(case, held, gathered, effects)
        verdict.ops = effects.ops
        if content.apis is not None:
            self._remember_providers(case, content.apis, verdict)
        self._seal(case, verdict, known)
        return verdict

    def _bound_still(self, record: WorkspaceRecord, home: str, content: Content) -> dict[str, Object]:
        """What a held workspace is served with, of the exports that offer something else by now."""
        offered = content.apis.bindings if content.apis is not None else {}
        out = {}
        for stored in self._site.store.scan(BINDINGS, record.cluster).records:
            binding = orjson.loads(stored.value)
            served = _bound(binding.get("status") or {})
            export = binding["spec"]["reference"]["export"]
            if served["schemas"] and served != _bound(offered.get(stored.key.name) or {}):
                out[f"{export.get('path') or home}:{export['name']}"] = served
        return out

    # -- good --------------------------------------------------------------------------------------------------------

    def _accept(self, case: Case, record: WorkspaceRecord, gathered: Gathered, content: Content) -> Verdict:
        known = self._summary(case, record)
        if case.recorded is None:
            known.served, known.held, known.errors, known.bound = None, "", [], {}
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
            known.commit = known.commit if case.recorded else case.moment.id
        served = replace(
            record,
            served=True,
            errors=known.errors,
            commit=known.commit,
            head=case.moment.id if effects.ops else record.head,
            directory=case.directory.directory if case.directory else "",
        )
        self._tree_objects.put(case, served, gathered, effects)
        verdict = Verdict(served, effects.ops, changed=own)
        verdict.provides = any(getattr(op, "key", None) and op.key.resource in PROVIDED for op in effects.ops)
        if served.head != case.moment.id and (effects.ops or served != case.record):
            verdict.record = replace(served, head=case.moment.id)
        if content.apis is not None:
            self._remember_providers(case, content.apis, verdict)
        self._seal(case, verdict, known)
        return verdict

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

    def _stored(self, keys: list[Key]) -> dict[Key, Record]:
        if self._fresh:
            return {}
        found = self._site.store.get_many(keys)
        return {k: r for k, r in zip(keys, found, strict=True) if r is not None}

    def _remember_providers(self, case: Case, found: apis.Apis, verdict: Verdict) -> None:
        for path, export in found.providers:
            key = Key(CONSUMERS, path, export, case.path)
            if self._site.store.get(key) is None:
                verdict.ops.append(Put(key, b"{}"))

    # -- both --------------------------------------------------------------------------------------------------------

    def _own_identity(self, case: Case, export: str) -> str:
        known = self._known(case)
        return self._site.identities.hash_of(case.path, export, known.identities.get(export, "") if known else "")

    def _known(self, case: Case) -> Summary | None:
        if case.recorded is not None:
            return Summary.from_json(case.recorded.summary.as_json())
        found = summary(self._site.store, case.record.cluster) if case.record is not None else {}
        return Summary.from_json(found) if found else None

    def _summary(self, case: Case, record: WorkspaceRecord) -> Summary:
        return self._known(case) or Summary(record.origin, record.commit or record.origin)

    def _effects(self, case: Case, known: Summary) -> Effects:
        return Effects(
            self._site.fleet,
            case.path,
            case.moment,
            self._site.moments,
            known,
            recorded=case.recorded.residue if case.recorded is not None else None,
            intents=case.intents,
            proposed=case.proposed,
        )

    def _seal(self, case: Case, verdict: Verdict, known: Summary) -> None:
        """The summary and, last, the record: what marks the transaction as this workspace's."""
        record = verdict.record
        if record == case.record:
            return
        if case.record is None:
            verdict.ops.append(Put(cluster_key(record.cluster), record.path.encode()))
        # Beside the objects: what a commit changes is counted and watched by its objects. Whether a workspace is served
        # at all is news by itself.
        write = Note if case.record is not None and case.record.served == record.served else Put
        text = orjson.dumps(known.as_json())
        verdict.ops.append(write(summary_key(record.cluster), bytes(memoryview(text))))
        verdict.ops.append(write(workspace_key(record.path), record.encode()))


def _brought(record: WorkspaceRecord, kind: types.ResolvedType) -> list[Object]:
    """What the workspace has for being of its type: default bindings, and what a cluster of Kubernetes starts with."""
    found = [computed.default_binding(record.cluster, path, name) for path, name in kind.bindings]
    if record.builtins == KUBERNETES:
        found += bootstrap.objects(builtins_of(record.builtins).groups(), clock.rfc3339(record.origin_time))
    return found


def _storages(key: Key, record: Record) -> set[str]:
    """The store's names of the resources that a CRD or an APIBinding serves."""
    if key.resource == CRDS:
        return {key.name}
    status = orjson.loads(record.value).get("status") or {}
    bound = status.get("boundResources") or ()
    return {storage_name(b["group"], b["resource"], b["schema"]["identityHash"]) for b in bound}


def _bound(status: Object) -> Object:
    """What a binding's status says that it is bound to, as Summary.bound holds it."""
    schemas = [b["schema"] for b in status.get("boundResources") or ()]
    return {
        "cluster": status.get("apiExportClusterName", ""),
        "identity": schemas[0]["identityHash"] if schemas else "",
        "schemas": [s["name"] for s in schemas],
    }

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
from apiserver.registry import strategy
from apiserver.registry.catalog import KEPT_SCHEMAS, Catalog
from apiserver.registry.kinds import KUBERNETES, builtins_of, workspace_builtins
from apiserver.registry.tree import WorkspaceRecord, cluster_key, summary, summary_key, workspace_key
from apiserver.storage.protocol import Note, Put, Record, Store
from reconciler.layout.manifest import Manifest
from reconciler.loading.case import Case, Verdict
from reconciler.loading.content import BINDINGS, CRDS, Content, Contents
from reconciler.loading.effects import Effects
from reconciler.loading.gather import Gathered, Gatherer
from reconciler.loading.identities import Identities
from reconciler.loading.moment import Moment, Moments
from reconciler.loading.render import Declared, Renderer
from reconciler.loading.sources import Sources, shipped
from reconciler.loading.trees import Trees
from reconciler.loading.world import CONSUMERS, EXPORTS, PROVIDED, SCHEMAS, World
from reconciler.plan import apis, bootstrap, computed, types
from reconciler.plan.problem import Problem
from reconciler.plan.summary import Summary

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """What judging stands on, the same for every workspace of a fleet."""

    fleet: str
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
        self._contents = Contents(world, site.catalog, site.sources, self._own_identity)

    def judge(self, case: Case) -> Verdict:
        """The verdict on one workspace. The step's world already shows its parent as it will be."""
        record = self._identity(case)
        base = self._site.trees.at(case.record.head) if case.record and case.record.head else None
        gathered = self._gatherer.gather(case, base)
        kind = types.resolve(
            gathered.workspace.value if gathered.workspace else None,
            case.path,
            self._parent_type(case.path),
            self._world.find_type,
        )
        gathered.problems.extend(case.problems)
        gathered.problems.extend(self._type_problems(case, gathered, kind))
        if not record.served:
            record = replace(record, type=str(kind.ref), builtins=kind.builtins)
        content = self._contents.examine(case, record, gathered, shipped(_brought(record, kind)))
        if content.problems and not gathered.complete:
            # All errors with their lines, the same ones whenever somebody looks.
            return self.judge(replace(case, forced=True))
        if content.problems:
            return self._hold(case, record, gathered, content)
        return self._accept(case, replace(record, writes=kind.writes), gathered, content)

    def _identity(self, case: Case) -> WorkspaceRecord:
        """The record as it is, or that of a workspace which appears now (or, at recovery, appeared then)."""
        if case.record is not None:
            return case.record
        origin = case.recorded.summary.origin if case.recorded else case.moment.id
        moment = self._site.moments.at(origin, case.moment.time)
        return WorkspaceRecord(
            path=case.path,
            cluster=logical_cluster_name(self._site.fleet, case.path, origin),
            parent=paths.parent(case.path) or "",
            served=False,
            origin=origin,
            origin_time=moment.time,
            directory=case.directory.directory if case.directory else "",
        )

    def _parent_type(self, path: str) -> types.TypeRef | None:
        parent = paths.parent(path)
        record = self._world.record(parent) if parent else None
        if record is None:
            return None
        where, _, name = record.type.rpartition(":")
        return types.TypeRef(name, where)

    def _type_problems(self, case: Case, gathered: Gathered, kind: types.ResolvedType) -> list[Problem]:
        manifest = gathered.workspace
        path, line = (manifest.path, manifest.line) if manifest else (case.path, 0)
        if kind.error and case.path != paths.ROOT:
            return [Problem(path, line, 0, kind.error, "correct spec.type, or declare the WorkspaceType")]
        if case.record is not None and case.record.served and case.record.type != str(kind.ref):
            text = f"spec.type is immutable: it is {case.record.type}, not {kind.ref}"
            return [Problem(path, line, 0, text, "recreate the workspace in two commits")]
        return []

    def refuse(self, case: Case) -> Verdict:
        """The verdict where judging itself failed: the workspace stays as it is, and says so."""
        problem = Problem(case.path, 0, 0, "could not be judged: an error inside Treeplane, see its log")
        record = replace(self._identity(case), errors=[str(problem)])
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
        self._put_tree_objects(case, held, gathered, effects)
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
        records = self._stored([*content.declared, *content.removed])
        for key in content.removed:
            effects.delete(key, records.get(key))
            self._delete_all_of(key, records.get(key), content, effects)
            self._keep_for_consumers(case.path, records.get(key), effects)
        for key, declared in content.declared.items():
            stored = records.get(key)
            status = self._status(case, declared, stored, content, effects)
            if case.recorded is not None and stored is None:
                _restore(declared, case.recorded.status(key))
            effects.put(declared, content.old.get(key), stored, status)
        own = effects.changed
        if own or not record.served:
            known.commit = known.commit if case.recorded else case.moment.id
        served = replace(
            record,
            served=True,
            errors=known.errors,
            commit=known.commit,
            directory=case.directory.directory if case.directory else "",
        )
        self._put_tree_objects(case, served, gathered, effects)
        verdict = Verdict(served, effects.ops, changed=own)
        verdict.provides = any(getattr(op, "key", None) and op.key.resource in PROVIDED for op in effects.ops)
        if effects.ops or served != case.record:
            verdict.record = replace(served, head=case.moment.id)
        if content.apis is not None:
            self._remember_providers(case, content.apis, verdict)
        self._seal(case, verdict, known)
        return verdict

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

    def _status(
        self, case: Case, declared: Declared, stored: Record | None, content: Content, effects: Effects
    ) -> Object | None:
        """A status that follows from content, the recorded one at recovery, or None: what is stored stays.

        One that follows from content is in no file: its times are the object's own creation, which recovery knows.
        """
        resource, name = declared.key.resource, declared.key.name
        if resource == CRDS:
            at = effects.time_of(declared, stored)
            return _dated(strategy.crd_status(_with_status(declared.obj, stored), at), at)
        if resource == BINDINGS and content.apis is not None:
            return _dated(content.apis.bindings[name], effects.time_of(declared, stored))
        if resource == EXPORTS:
            identities, at = effects.summary.identities, effects.time_of(declared, stored)
            identities[name] = self._site.identities.hash_of(case.path, name, identities.get(name, ""))
            return _dated(apis.export_status({}, identities[name], at), at)
        if case.recorded is not None and stored is None:
            recorded_part = case.recorded.status(declared.key) or {}
            found: Object | None = recorded_part.get("status") or declared.obj.get("status")
            return found or _shipped_status(declared)
        return _shipped_status(declared) if stored is None else None

    def _remember_providers(self, case: Case, found: apis.Apis, verdict: Verdict) -> None:
        for path, export in found.providers:
            key = Key(CONSUMERS, path, export, case.path)
            if self._site.store.get(key) is None:
                verdict.ops.append(Put(key, b"{}"))

    # -- both --------------------------------------------------------------------------------------------------------

    def _own_identity(self, case: Case, export: str) -> str:
        summary = self._summary(case, self._identity(case))
        return self._site.identities.hash_of(case.path, export, summary.identities.get(export, ""))

    def _summary(self, case: Case, record: WorkspaceRecord) -> Summary:
        if case.recorded is not None:
            return Summary.from_json(case.recorded.summary.as_json())
        found = {} if case.record is None else summary(self._site.store, record.cluster)
        return Summary.from_json(found) if found else Summary(record.origin, record.commit or record.origin)

    def _effects(self, case: Case, known: Summary) -> Effects:
        return Effects(
            self._site.fleet, case.path, case.moment, self._site.moments, known, recorded=case.recorded is not None
        )

    def _put_tree_objects(self, case: Case, record: WorkspaceRecord, gathered: Gathered, effects: Effects) -> None:
        """The Workspace object in the parent, and the LogicalCluster: that of a workspace without a good commit comes
        with the first one, since lists over many workspaces leave it out until then."""
        since = self._site.moments.at(effects.summary.held or case.moment.id, case.moment.time)
        facts = _facts(record, since)
        if record.served:
            cluster = computed.logical_cluster(facts)
            status = cluster.pop("status")
            [manifest] = shipped([cluster])
            computed_cluster = Renderer(workspace_builtins(), record.cluster, _no_line).trusted(manifest)
            self._put_declared(computed_cluster, status, effects)
        parent = self._world.record(record.parent) if record.parent else None
        if parent is None or (not gathered.complete and case.record is not None and _looks_alike(record, case.record)):
            return
        # One that is held keeps its last good workspace.yaml too.
        kept = gathered.old_workspace if record.errors and record.served else None
        bare = shipped([_bare_workspace(case.path)])[0]
        renderer = Renderer(workspace_builtins(), parent.cluster, _no_line)
        declared = _render_workspace(kept or gathered.workspace or bare, record, renderer)
        # A Workspace that does not pass its own rules is held; what can be said of it is its name and why.
        declared = declared or renderer.trusted(bare)
        before = _render_workspace(gathered.old_workspace, record, renderer) if gathered.old_workspace else None
        above = replace(effects, path=record.parent, changed=False)
        self._put_declared(declared, computed.workspace_status(facts), above, before)

    def _put_declared(
        self, declared: Declared, status: Object, effects: Effects, before: Declared | None = None
    ) -> None:
        stored = self._stored([declared.key]).get(declared.key)
        old = (before or declared).obj if stored is not None else None
        effects.put(declared, old, stored, status)

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


def _shipped_status(declared: Declared) -> Object | None:
    """The status that an object of Treeplane's own making starts with. Manifests in files never have one."""
    found: Object | None = None if declared.manifest.path else declared.manifest.value.get("status")
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


def _looks_alike(one: WorkspaceRecord, other: WorkspaceRecord) -> bool:
    """Whether a workspace's object in its parent says the same for both."""
    return (one.errors, one.served, one.directory) == (other.errors, other.served, other.directory)


def _render_workspace(manifest: Manifest, record: WorkspaceRecord, renderer: Renderer) -> Declared | None:
    """The Workspace object, with what the server knows; None where it does not pass its own rules."""
    where, _, name = record.type.rpartition(":")
    spec = {**(manifest.value.get("spec") or {}), "cluster": record.cluster, "type": {"name": name, "path": where}}
    value = {**manifest.value, "metadata": {**manifest.value["metadata"]}, "spec": spec}
    return renderer.render(replace(manifest, value=value))[0]


def _restore(declared: Declared, recorded: Object | None) -> None:
    """What controllers had noted on the object: placement decisions are annotations."""
    noted = ((recorded or {}).get("metadata") or {}).get("annotations")
    if noted:
        annotations = declared.obj["metadata"].get("annotations") or {}
        declared.obj["metadata"]["annotations"] = {**annotations, **noted}


def _no_line(manifest: Manifest, _: str) -> int:
    return manifest.line


def _dated(status: Object, at: str) -> Object:
    """All conditions with one time."""
    return {**status, "conditions": [{**c, "lastTransitionTime": at} for c in status.get("conditions") or ()]}


def _facts(record: WorkspaceRecord, since: Moment) -> computed.WorkspaceFacts:
    """`since`: when it was first held back, if it is."""
    where, _, name = record.type.rpartition(":")
    return computed.WorkspaceFacts(
        path=record.path,
        cluster=record.cluster,
        type_name=name,
        type_path=where,
        origin_time=clock.rfc3339(record.origin_time),
        commit_time=since.rfc3339,
        problems=tuple(record.errors),
        served=record.served,
    )


def _with_status(obj: Object, stored: Record | None) -> Object:
    return obj if stored is None else {**obj, "status": orjson.loads(stored.value).get("status")}


def _bare_workspace(path: str) -> Object:
    return {"apiVersion": computed.TENANCY, "kind": "Workspace", "metadata": {"name": paths.base(path)}, "spec": {}}

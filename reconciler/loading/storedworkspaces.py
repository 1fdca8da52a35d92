"""A workspace that is made through the API where writes go to the store: what is written when it comes.

Called by controllers/workspaces. No commit and no file of the status branch knows of such a workspace. What every
workspace has, and what its type brings, is made as for one that git declares, all in one transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from time import time_ns
from typing import Any, NamedTuple

import orjson

from apiserver.auth import scopes
from apiserver.auth.user import SERVICE_ACCOUNT_PREFIX
from apiserver.model import conditions, marks, paths
from apiserver.model.commits import NONE
from apiserver.model.conditions import condition
from apiserver.model.identity import base36, home_cluster_name
from apiserver.model.origins import BOOTSTRAP, COMPUTED, TYPED, Origin
from apiserver.model.reserved import settable
from apiserver.model.storagenames import BINDINGS
from apiserver.registry import codec, shards, tree
from apiserver.registry import workspacetypes as types
from apiserver.registry.kinds import KUBERNETES, KindTable, builtins_of
from apiserver.registry.lifecycles import with_labels
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace
from apiserver.registry.workspacetypes import ResolvedType, TypeRef
from apiserver.storage.protocol import ABSENT, Op, Put, Record, Store
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.clusterobject import facts_of, no_line
from reconciler.loading.consumers import listing
from reconciler.loading.effects import Effects
from reconciler.loading.gather import EVERYWHERE
from reconciler.loading.moment import Moment, OneMoment
from reconciler.loading.newcomers import given_by
from reconciler.loading.render import DeclaredObject, Renderer
from reconciler.loading.settled import SettledWorld
from reconciler.loading.sources import generated
from reconciler.loading.statuses import beginning, complete
from reconciler.loading.workspaceobject import marked
from reconciler.plan import apis, bootstrap, computed
from reconciler.plan.summary import Summary

Object = dict[str, Any]

ADMIN = "workspace-admin"
"""The ClusterRoleBinding by which who made a workspace may do everything in it."""
HOME = "root:home"
"""The type of home workspaces."""
SCHEDULED = "WorkspaceScheduled"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_HALF = 8
"""Characters of half a logical cluster name."""


class Unscheduled(NamedTuple):
    """Why a workspace cannot be made for now: the Workspace says so."""

    reason: str
    message: str

    def ops(self, workspace: Record, moment: Moment) -> list[Op]:
        """Nothing where it is said already."""
        obj = orjson.loads(workspace.value)
        said = condition(SCHEDULED, False, self.reason, self.message, at=moment.rfc3339)
        status = obj.get("status") or {}
        told = {**status, "conditions": conditions.merged(status.get("conditions"), [said])}
        value = codec.encode({**obj, "status": told})
        return [Put(workspace.key, value, workspace.revision, workspace.stamp)] if value != workspace.value else []


def coming(store: Store, parent: WorkspaceRecord, workspace: Record, moment: Moment) -> list[Op] | Unscheduled:
    """What makes the workspace for which a Workspace object stands in `parent`. `moment` names no commit. The writes
    fail where somebody else makes a workspace there."""
    obj, world = orjson.loads(workspace.value), SettledWorld(store)
    path = paths.join(parent.path, workspace.key.name)
    by_path = types.by_path(obj, lambda named: tree.path_named(store, named))
    kind = types.resolve(by_path, path, TypeRef.parse(parent.type), world.find_type)
    if kind.error:
        return Unscheduled("WorkspaceTypesInvalid", f"{kind.error}: {kind.remedy}")
    kind = types.with_programs(kind, world.find_type, world.cluster_of)
    shard = world.shard_of(obj)
    if shard == shards.NONE:
        return Unscheduled("Unschedulable", shards.unmatched(shards.selector_of(obj)))
    record = _record(path, _new_name(), kind, moment, shard)
    made = _Made(store, world, parent.cluster, record, obj, moment)
    return [*made.ops(kind), made.workspace(workspace), *_rows(record)]


def home(store: Store, user: Object, moment: Moment) -> list[Op] | Unscheduled:
    """What makes the home of a user (a userInfo), for which no Workspace stands; nothing where there is one."""
    name, world = str(user.get("username", "")), SettledWorld(store)
    path = paths.home(name)
    if tree.workspace_at(store, path) is not None:
        return []
    where, _, of_type = HOME.rpartition(":")
    said = {"metadata": {"annotations": {marks.OWNER: orjson.dumps(user).decode()}}}
    obj: Object = {**said, "spec": {"type": {"name": of_type, "path": where}}}
    kind = types.resolve(obj, path, None, world.find_type)
    if kind.error:
        return Unscheduled("WorkspaceTypesInvalid", f"{kind.error}: {kind.remedy}")
    kind = types.with_programs(kind, world.find_type, world.cluster_of)
    record = _record(path, home_cluster_name(name), kind, moment, world.shard_of(obj))
    made = _Made(store, world, "", record, obj, moment)
    return [*made.ops(kind), *_rows(record)]


def _new_name() -> str:
    """A logical cluster name: one half is the time in milliseconds, the other one chance. What comes together stands
    side by side in the store, so that to write it, or to take it away, touches a few of its pages."""
    return base36(time_ns() // 1_000_000, _HALF) + "".join(secrets.choice(_DIGITS) for _ in range(_HALF))


def _record(path: str, cluster: str, kind: ResolvedType, moment: Moment, shard: str) -> WorkspaceRecord:
    return WorkspaceRecord(
        path,
        cluster,
        paths.parent(path) or "",
        str(kind.ref),
        writes="Store",
        builtins=kind.builtins,
        origin_time=moment.time,
        shard=shard,
        **given_by(kind),
        stored=True,
    )


def _rows(record: WorkspaceRecord) -> tuple[Op, ...]:
    """They fail where there is a workspace already."""
    return put_workspace(record)._replace(expect=ABSENT), tree.typed(record), placed(record)


class _Made(NamedTuple):
    """A workspace on its way. `above`: its parent's logical cluster name, "" for a home. `obj`: its Workspace."""

    store: Store
    world: SettledWorld
    above: str
    record: WorkspaceRecord
    obj: Object
    moment: Moment

    def ops(self, kind: ResolvedType) -> list[Op]:
        """What stands in it."""
        # UIDs follow from a fleet's id and a logical cluster's name, which a home has again: so no two have one id.
        path, alone = self.record.path, secrets.token_hex(2 * _HALF)
        effects = Effects(
            alone, path, self.moment, OneMoment(self.moment), Summary(NONE), changes=WorkspaceChanges(path)
        )
        table = builtins_of(kind.builtins, path)
        for declared in self._common(table):
            effects.put(declared, None, None, beginning(declared, None))
        for declared, status in self._bindings(kind, table):
            effects.put(declared, None, None, status)
        [cluster] = self._rendered(table, [self._logical_cluster()], COMPUTED)
        effects.put(cluster, None, None, self._status())
        return [*effects.changes.ops(), *listing(self.store, path, kind.bindings)]

    def workspace(self, stored: Record) -> Put:
        """The Workspace with what is known of it by now."""
        annotations = dict(self.obj["metadata"].get("annotations") or {})
        annotations[marks.OWNER] = orjson.dumps({"username": self._owner().get("username", "")}).decode()
        ref, (_, said) = TypeRef.parse(self.record.type), types.wanted(self.obj)
        spec = {
            **(self.obj.get("spec") or {}),
            "cluster": self.record.cluster,
            "type": {"name": ref.name, "path": said or ref.path},
        }
        status = self.obj.get("status") or {}
        now = self._status()
        told = conditions.merged(status.get("conditions"), now["conditions"])
        metadata = marked({**self.obj["metadata"], "annotations": annotations}, self.record)
        metadata["labels"] = with_labels(metadata.get("labels") or {}, now)
        made = {
            **self.obj,
            "metadata": metadata,
            "spec": spec,
            "status": {**status, **now, "conditions": told},
        }
        return Put(stored.key, codec.encode(made), stored.revision, stored.stamp)

    def _common(self, table: KindTable) -> Iterator[DeclaredObject]:
        """What every workspace has, or what a cluster of Kubernetes starts with; and who made it rules it."""
        yield from self._rendered(table, [EVERYWHERE.value], COMPUTED)
        if self.record.builtins == KUBERNETES:
            started = bootstrap.objects(table.groups(), self.moment.rfc3339)
            yield from self._rendered(table, started, BOOTSTRAP)
        user = str(self._owner().get("username") or "")
        if user:
            admin = admin_of(user, self.above or paths.ROOT)
            admin["metadata"]["annotations"] = {marks.ORIGIN: marks.RUNTIME}
            yield from self._rendered(table, [admin], COMPUTED)

    def _bindings(self, kind: ResolvedType, table: KindTable) -> Iterator[tuple[DeclaredObject, Object]]:
        """Those that the type brings, each with its status."""
        record, at = self.record, self.moment.rfc3339
        exports = [(path, name, self.world.find_export(path, name)) for path, name in kind.bindings]
        wanted = [
            computed.default_binding(record.cluster, path, name, export.claims if export is not None else ())
            for path, name, export in exports
        ]
        found = self._rendered(table, wanted, TYPED)
        taken = apis.resolve(table, (), (d.obj for d in found), self.world.find_export, record.path, at)
        for declared in found:
            yield declared, complete(taken.bindings[declared.key.name], BINDINGS, declared.obj, at)

    def _rendered(self, table: KindTable, objects: list[Object], origin: Origin) -> list[DeclaredObject]:
        renderer = Renderer(table, self.record.cluster, no_line)
        found = (renderer.render(manifest)[0] for manifest in generated(objects, origin))
        return [declared for declared in found if declared is not None]

    def _logical_cluster(self) -> Object:
        made = computed.logical_cluster(facts_of(self.record, self.above))
        if self.above:
            made["spec"]["owner"]["uid"] = self.obj["metadata"]["uid"]
        else:
            made["spec"]["directlyDeletable"] = True  # there is nothing else to delete
        made["metadata"]["annotations"] |= settable(self.obj["metadata"])
        made["metadata"]["labels"] = with_labels({}, self._status())
        return made

    def _status(self) -> Object:
        """Of the Workspace and the LogicalCluster: as of any, but that no commit has to do with it."""
        found = computed.status(facts_of(self.record, self.above))
        return {**found, "conditions": [c for c in found["conditions"] if c["type"] != computed.COMMIT_APPLIED]}

    def _owner(self) -> Object:
        return owner_of(self.obj)


def owner_of(workspace: Object) -> Object:
    """Who made a workspace through the API, as a userInfo; {} where nobody says."""
    said = (workspace["metadata"].get("annotations") or {}).get(marks.OWNER)
    try:
        found = orjson.loads(said or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def admin_of(user: str, parent_cluster: str) -> Object:
    """What makes who made a workspace its administrator. A ServiceAccount rules a workspace below its own under the
    name that it has abroad."""
    name = scopes.in_full(parent_cluster, user) if user.startswith(SERVICE_ACCOUNT_PREFIX) else user
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": ADMIN},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
    }

"""Sync targets without processes: what the syncer asks of a cluster, answered from memory.

For tests over many histories. `Cluster` keeps objects, revisions and a log as a kube-apiserver does, as far as the
syncer goes by them; a Deployment is available as soon as it is there. `away`: nobody answers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.model.kinds import GroupResource
from apiserver.model.marks import FIELD_MANAGER
from apiserver.registry.kinds import kubernetes_builtins
from reconciler.plan.syncable import SYNCED
from reconciler.syncing.answers import Discovery
from reconciler.syncing.client import ClientSettings, TargetClient, TargetEvent, TargetPage
from reconciler.syncing.errors import TargetRefused, TargetUnreachable

Object = dict[str, Any]

SERVED = {k.group_resource: k for k in kubernetes_builtins().all() if k.group_resource in SYNCED}


class Place(NamedTuple):
    resource: str
    namespace: str
    name: str


def place(where: str) -> Place:
    """`/api/v1/namespaces/x/configmaps/y`."""
    parts = where.split("/")[3 if where.startswith("/api/") else 4 :]
    if parts[0] == "namespaces" and len(parts) > 2:
        return Place(parts[2], parts[1], parts[3] if len(parts) > 3 else "")
    return Place(parts[0], "", parts[1] if len(parts) > 1 else "")


class Cluster:
    def __init__(self) -> None:
        self.away = False
        self.writes: list[str] = []
        """What was written, in words."""
        self.refuses: dict[str, str] = {}
        """What is forbidden, by name, and why."""
        self.unseen: set[str] = set()
        """Resources that may not be listed in a namespace."""
        self._objects: dict[Place, Object] = {}
        self._log: list[tuple[int, str, str, Object]] = []
        self._revision = 100
        self._news = threading.Condition()

    def names(self, resource: str) -> set[str]:
        with self._news:
            return {at.name for at in self._objects if at.resource == resource}

    def find(self, resource: str, name: str) -> Object:
        with self._news:
            return next(obj for at, obj in self._objects.items() if (at.resource, at.name) == (resource, name))

    def all(self, resource: str, name: str) -> dict[str, Object]:
        """Those of that name, by their namespaces."""
        with self._news:
            return {
                at.namespace: obj for at, obj in self._objects.items() if (at.resource, at.name) == (resource, name)
            }

    def answers(self) -> None:
        if self.away:
            raise TargetUnreachable("connection refused")

    def read(self, where: str) -> Object | None:
        with self._news:
            return self._objects.get(place(where))

    def list(self, where: str, selector: str) -> tuple[list[Object], str]:
        at = place(where)
        with self._news:
            if at.namespace and at.resource in self.unseen:
                raise TargetRefused(403, "Forbidden", f"{at.resource} is forbidden")
            found = [
                obj
                for other, obj in self._objects.items()
                if other.resource == at.resource and at.namespace in ("", other.namespace) and _matches(selector, obj)
            ]
            return found, str(self._revision)

    def write(self, where: str, body: Object, *, dry_run: bool) -> Object:
        """As server-side apply by the one who applies everything here."""
        at = place(where)
        with self._news:
            if at.name in self.refuses:
                raise TargetRefused(403, "Forbidden", self.refuses[at.name])
            if at.namespace and Place("namespaces", "", at.namespace) not in self._objects:
                raise TargetRefused(404, "NotFound", f"namespaces {at.namespace} not found")
            before = self._objects.get(at)
            content = {k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata")}
            metadata = {**body["metadata"], "managedFields": [_owned(body)]}
            kept = {k: before["metadata"][k] for k in ("uid", "resourceVersion", "generation")} if before else {}
            made = {**content, "metadata": {**metadata, **kept}}
            made |= {"status": before["status"]} if before and "status" in before else {}
            if before == made or dry_run:
                return made
            self._revision += 1
            made["metadata"] |= {
                "uid": kept.get("uid", f"{at.name}-{self._revision}"),
                "resourceVersion": str(self._revision),
                "generation": int(kept.get("generation", 0)) + 1,
            }
            if at.resource == "deployments":
                made["status"] = _available(made)
            self.writes.append(f"{'~' if before else '+'}{at.resource}/{at.name}")
            self._put(at, "MODIFIED" if before else "ADDED", made)
            return made

    def remove(self, where: str, uid: str) -> None:
        at = place(where)
        with self._news:
            found = self._objects.get(at)
            if found is None or found["metadata"]["uid"] != uid:
                return
            inside = [other for other in self._objects if at.resource == "namespaces" and other.namespace == at.name]
            for each in (*inside, at):
                gone = self._objects[each]
                self._revision += 1
                self.writes.append(f"-{each.resource}/{each.name}")
                metadata = {**gone["metadata"], "resourceVersion": str(self._revision)}
                self._put(each, "DELETED", {**gone, "metadata": metadata})

    def strange(self, where: str, body: Object) -> None:
        """Somebody else's object, or what somebody made of one that is there."""
        with self._news:
            self._revision += 1
            metadata = {"uid": f"u{self._revision}", **body["metadata"], "resourceVersion": str(self._revision)}
            self._put(place(where), "ADDED", {**body, "metadata": metadata})

    def after(self, where: str, selector: str, revision: int, seconds: float) -> list[TargetEvent]:
        """What happened since, waiting a little for it."""
        resource = place(where).resource
        with self._news:
            self._news.wait_for(lambda: self.away or self._revision > revision, seconds)
            return [
                TargetEvent(kind, obj, 100)
                for number, kind, of, obj in self._log
                if number > revision and of == resource and _matches(selector, obj)
            ]

    def _put(self, at: Place, kind: str, obj: Object) -> None:
        if kind == "DELETED":
            del self._objects[at]
        else:
            self._objects[at] = obj
        self._log.append((self._revision, kind, at.resource, obj))
        self._news.notify_all()


class SimulatedClient(TargetClient):
    """The connection to a Cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.settings = ClientSettings()
        self.discovery = Discovery()
        self.barred = lambda: ""
        self.embedded = True  # it warns of nothing
        self._cluster = cluster
        self._ended = False

    def ping(self) -> None:
        self._cluster.answers()

    def served(self) -> Mapping[GroupResource, tuple[str, ...]]:
        self._cluster.answers()
        self.discovery = Discovery(
            {resource: (kind.version,) for resource, kind in SERVED.items()},
            {(resource.group, kind.kind): resource for resource, kind in SERVED.items()},
        )
        return self.discovery.versions

    def get(self, where: str) -> Object | None:
        self._cluster.answers()
        return self._cluster.read(where)

    def list(self, where: str, selector: str = "") -> Iterator[TargetPage]:
        self._cluster.answers()
        items, revision = self._cluster.list(where, selector)
        yield TargetPage(items, 100 * len(items), revision)

    def watch(self, where: str, selector: str, revision: str, fields: str = "") -> Iterator[TargetEvent]:
        assert not fields
        at = int(revision)
        while not self._ended:
            self._cluster.answers()
            for event in self._cluster.after(where, selector, at, 0.05):
                at = max(at, int(event.object["metadata"]["resourceVersion"]))
                yield event

    def apply(self, where: str, body: bytes, *, dry_run: bool = False) -> Object:
        self._may_write()
        return self._cluster.write(where, orjson.loads(body), dry_run=dry_run)

    def create(self, where: str, body: bytes) -> Object:
        self._may_write()
        content = orjson.loads(body)
        return self._cluster.write(f"{where}/{content['metadata']['name']}", content, dry_run=False)

    def delete(self, where: str, uid: str) -> None:
        self._may_write()
        self._cluster.remove(where, uid)

    def finish(self) -> None:
        self._ended = True

    def close(self) -> None:
        self.finish()

    def _may_write(self) -> None:
        self._cluster.answers()
        if self._ended:
            raise TargetUnreachable("the connection was closed")


def _matches(selector: str, obj: Object) -> bool:
    key, _, value = selector.partition("=")
    return not selector or (obj["metadata"].get("labels") or {}).get(key) == value


def _available(deployment: Object) -> Object:
    count = deployment["spec"].get("replicas", 1)
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {"observedGeneration": deployment["metadata"]["generation"], **dict.fromkeys(names, count)}


def _owned(body: Object) -> Object:
    fields = _fields({**body, "metadata": {k: body["metadata"].get(k, {}) for k in ("labels", "annotations")}})
    for said in ("f:apiVersion", "f:kind"):
        fields.pop(said, None)
    return {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}


def _fields(value: Any) -> Object:
    return {f"f:{name}": _fields(inner) for name, inner in value.items()} if isinstance(value, dict) else {}

"""Apply one upstream object to one sync target: nothing when it is in step, else one server-side apply.

Called by the syncer's threads, one item at a time per object. Removing is prune.py's. In step means: what was seen on
the target at its last revision was compared with this very rendering; where the comparison is not sure, the target is
asked with a dry run, so that a restart writes nothing to a cluster that is right.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.model.commits import CommitRef
from apiserver.registry.served import ServedKind
from reconciler.controllers.failures import Expected
from reconciler.plan.health import healthy
from reconciler.syncing import client, inventory
from reconciler.syncing.compare import in_step, same
from reconciler.syncing.errors import Foreign, NothingNew, TargetRefused
from reconciler.syncing.homes import Home
from reconciler.syncing.inventory import Inventory
from reconciler.syncing.live import Cache, Live
from reconciler.syncing.render import encode, render
from reconciler.syncing.site import CONFIG_MAPS, NAMESPACES, TargetSite
from reconciler.syncing.status import check, lifted
from reconciler.syncing.upstream import Item, Outrun, Upstream

Object = dict[str, Any]

_LOOKS = 3
"""How often the target is asked about one object that changes between the answers."""


class Applier:
    def __init__(self, site: TargetSite, upstream: Upstream) -> None:
        self._site, self._upstream = site, upstream

    def apply(self, item: Item, kind: ServedKind, obj: Object, commit: CommitRef) -> bool:
        """Bring `obj` down and its status up; whether it was so there, and was changed. `commit`: its workspace's, read
        before the object was. Raises Refused, NotServed, NothingNew, Foreign, Unreachable or Expected."""
        site = self._site
        version = site.version(item.kind, kind.version)
        cache = site.watch(item.kind, version).cache
        self._check_admitted(item, cache)
        home = self._home(item.cluster, item.namespace)
        if home.terminating:
            raise Expected(f"namespace {home.name} of the target is being deleted")
        rendered = render(item.kind, obj, home.destination(site.key), scaled=self._upstream.scaled(item))
        body, digest = encode(rendered)
        live = cache.get(home.name, item.name)
        if live is not None and live.deleting:
            return False  # its end is an event, which brings the item back
        if live is not None and live.fresh is None and live.digest == digest:
            return False
        where = client.path(item.kind, version, home.name, item.name)
        found = self._right(live, rendered, digest, where, body)
        if found is None:
            self._listed(home, item, kind, commit)
            found = site.client.apply(where, body)
            cache.saw(found)
            drifted = live is not None and live.digest == digest
        else:
            drifted = False
        self._note(cache, found, digest, item, kind, obj)
        return drifted

    def _check_admitted(self, item: Item, cache: Cache) -> None:
        """Raises NothingNew for what has no copy, where its workspace lost the use of the target."""
        if self._upstream.bindings.takes(item.cluster, item.namespace, self._site.key):
            return
        home = self._site.homes.get(item.cluster, item.namespace)
        if home is None or cache.get(home.name, item.name) is None:
            raise NothingNew("its workspace may not use this cluster any more, so nothing new is copied there")

    def _right(self, live: Live | None, rendered: Object, digest: bytes, where: str, body: bytes) -> Object | None:
        """The live object if it is in step; None if there is something to apply."""
        if live is None or (live.fresh is None and live.digest):
            return None
        seen = live.fresh or self._site.client.get(where)  # asked for where there was no room to keep it
        for _ in range(_LOOKS):
            if seen is None or in_step(rendered, seen):
                return seen
            if live.digest not in (b"", digest):
                return None  # the upstream object changed, so there is something to apply
            answer = self._site.client.apply(where, body, dry_run=True)
            if same(seen, answer):
                return seen
            if _revision(seen) == _revision(answer):
                return None
            seen = self._site.client.get(where)  # it was changed meanwhile, by its own controllers as a rule
        return None

    def _note(self, cache: Cache, live: Object, digest: bytes, item: Item, kind: ServedKind, obj: Object) -> None:
        metadata = live["metadata"]
        well = healthy(item.kind, live)
        cache.compared(metadata["namespace"], metadata["name"], str(metadata["resourceVersion"]), digest, well)
        self.report(item, kind, obj, live)

    def report(self, item: Item, kind: ServedKind, obj: Object, live: Object) -> None:
        """Bring up the status of a live object that is in step with `obj`. Raises Unfit."""
        if "status" not in kind.subresources or not self._upstream.reports(
            self._site.key, item.cluster, item.namespace
        ):
            return
        if live.get("status"):
            check(live["status"], kind.schema)
        if lifted(obj, live) is None:
            return
        generation = obj["metadata"].get("generation")

        def change(current: Object) -> Object | None:
            if current["metadata"].get("generation") != generation:
                return None  # a newer one is on its way down; its own status will come up
            return lifted(current, live)

        self._upstream.objects.update(self._upstream.key(kind, item), change)

    def _home(self, cluster: str, namespace: str) -> Home:
        """The downstream namespace, created if need be."""
        homes = self._site.homes
        found = homes.get(cluster, namespace)
        if found is not None:
            return found
        with self._site.lock(cluster, namespace):
            found = homes.get(cluster, namespace)
            if found is None:
                homes.saw(self._create(cluster, namespace))
                found = homes.get(cluster, namespace)
        if found is None:
            raise Foreign(f"the target has two namespaces for {namespace}")
        return found

    def _create(self, cluster: str, namespace: str) -> Object:
        manifest = self._site.homes.manifest(cluster, namespace)
        body, name = orjson.dumps(manifest), manifest["metadata"]["name"]
        try:
            return self._site.client.create(client.path(NAMESPACES, "v1"), body)
        except TargetRefused as error:
            if error.reason != "AlreadyExists":
                raise
        # Somebody took our label off it, or it is not ours at all.
        where = client.path(NAMESPACES, "v1", name=name)
        there = self._site.client.get(where)
        if there is None or not self._site.homes.ours(there, cluster, namespace):
            raise Foreign(f"namespace {name} of the target is not ours; rename or delete it there")
        return self._site.client.apply(where, body)

    def _listed(self, home: Home, item: Item, kind: ServedKind, commit: CommitRef) -> None:
        """Have the kind in the namespace's inventory before its first object is there, and a commit that knows of the
        object. Raises Outrun where the workspace moved on since it was read."""
        mine = (kind.group, kind.kind)
        held = self._held(home, item, commit)
        if held is not None and mine in held.kinds:
            return
        with self._site.lock(item.cluster, item.namespace):
            held = self._held(home, item, commit)
            if held is not None and mine in held.kinds:
                return
            kinds = {mine}
            if held is None:
                items = self._upstream.items(item.cluster, item.namespace, self._site.offered)
                kinds |= {(k.group, k.kind) for k, _ in items}
            workspace, placements = self._upstream.placing(self._site.key, item.cluster, item.namespace)
            path = workspace.path if workspace else item.cluster
            before = held or Inventory(path)
            # Of what was begun with, so that git can tell of it even if it never gets done.
            commit = before.commit or commit
            self.note(home, Inventory(path, commit, before.kinds | kinds, before.placements | placements))

    def _held(self, home: Home, item: Item, commit: CommitRef) -> Inventory | None:
        """The inventory, which waits for this object from now on before it names a later commit. Raises Outrun where it
        names one already: whoever made it may have read its own object later."""
        held = self._site.inventory(home.name)
        if held is not None and held.commit != commit and self._upstream.commit(item.cluster) != commit:
            raise Outrun(f"{item.name} is of an earlier commit")
        return held

    def note(self, home: Home, held: Inventory) -> None:
        """Write the namespace's inventory."""
        site = self._site
        manifest = inventory.parent(home.name, held, site.labels)
        where = client.path(CONFIG_MAPS, "v1", home.name, inventory.PARENT_NAME)
        answer = site.client.apply(where, orjson.dumps(manifest))
        site.note_inventory(home.name, held)
        site.watch(CONFIG_MAPS, "v1").cache.saw(answer)


def _revision(obj: Object) -> str:
    """Of an object as a cluster answered it (answers.checked)."""
    return str(obj["metadata"]["resourceVersion"])

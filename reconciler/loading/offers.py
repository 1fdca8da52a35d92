"""What a workspace provides to others (exports with their schemas, workspace types), read from its manifests alone.

Asked by world for a workspace that is being judged itself, where judging it first is impossible. Nothing else of the
workspace counts: whether it is good is its own judgement's, after which whoever relied on this is judged again. An
export is offered when its schemas are whole; a manifest with errors offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS, SCHEMAS, SHARDS, TYPES
from apiserver.registry.builtins.catalogue import kinds_having
from apiserver.registry.exportspec import offered_schemas
from apiserver.registry.kinds import KindTable
from reconciler.layout.manifest import Manifest
from reconciler.loading.render import Renderer
from reconciler.plan.exports import Export

Object = dict[str, Any]


_KINDS = kinds_having(lambda kind: kind.offered)


class Offers:
    """Of the workspace at `path`. `identity`: the identity hash of one of its exports. `uid`: what an object
    has or will have."""

    def __init__(
        self,
        path: str,
        cluster: str,
        builtins: KindTable,
        manifests: Iterable[Manifest],
        identity: Callable[[Object], str],
        uid: Callable[[Key], str],
    ) -> None:
        self._path, self._cluster, self._identity = path, cluster, identity
        renderer = Renderer(builtins, cluster, lambda manifest, _: manifest.line)
        self._found: dict[Key, Object] = {}
        for manifest in manifests:
            if manifest.gvk.kind in _KINDS:
                declared, problems = renderer.render(manifest)
                if declared is not None and not problems:
                    metadata = {**declared.obj["metadata"], "uid": uid(declared.key)}
                    self._found[declared.key] = {**declared.obj, "metadata": metadata}

    def export(self, name: str) -> Export | None:
        found = self._get(EXPORTS, name)
        if found is None:
            return None
        schemas = {each: self.schema(each) for each in offered_schemas(found)}
        return Export.of(self._path, self._cluster, found, self._identity(found), schemas)

    def schema(self, name: str) -> Object | None:
        return self._get(SCHEMAS, name)

    def type(self, name: str) -> Object | None:
        return self._get(TYPES, name)

    def shards(self) -> list[Object]:
        return [obj for key, obj in self._found.items() if key.resource == SHARDS]

    def _get(self, resource: str, name: str) -> Object | None:
        return self._found.get(Key(resource, self._cluster, "", name))

"""What a workspace provides to others (exports with their schemas, workspace types), read from its manifests alone.

Asked by world for a workspace that is being judged itself, where judging it first is impossible. Nothing else of the
workspace counts: whether it is good is its own judgement's, after which whoever relied on this is judged again. An
export is offered when its schemas are whole; a manifest with errors offers nothing. What it was to offer is known all
the same (consequences).
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
_TYPE = "WorkspaceType"


class Offers:
    """Of the workspace at `path`. `identity`: the identity hash of one of its exports. `uid`: what an object
    has or will have. `unread`: there are files that cannot be read, which may offer anything."""

    def __init__(
        self,
        path: str,
        cluster: str,
        builtins: KindTable,
        manifests: Iterable[Manifest],
        identity: Callable[[Object], str],
        uid: Callable[[Key], str],
        *,
        unread: bool = False,
    ) -> None:
        self._path, self._cluster, self._identity, self._unread = path, cluster, identity, unread
        renderer = Renderer(builtins, cluster, lambda manifest, _: manifest.line)
        self._found: dict[Key, Object] = {}
        self._bad_types = set[str]()
        self._kinds = set[tuple[str, str]]()
        for manifest in manifests:
            if manifest.gvk.kind in _KINDS:
                self._kinds.add(_kind_of(manifest.value))
                declared, problems = renderer.render(manifest)
                if declared is not None and not problems:
                    metadata = {**declared.obj["metadata"], "uid": uid(declared.key)}
                    self._found[declared.key] = {**declared.obj, "metadata": metadata}
                elif manifest.gvk.kind == _TYPE:
                    self._bad_types.add(manifest.name)

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

    def says_otherwise(self, type_name: str, stands: Object | None) -> bool:
        """Whether a type is to be another than the one that there is, or may be."""
        said = self.type(type_name)
        if type_name in self._bad_types:
            return True
        if said is None or stands is None:
            return stands is None and (self._unread or said is not None)
        return bool(said.get("spec") != stands.get("spec"))

    def says_kind(self, group: str, kind: str) -> bool:
        """Whether one of the schemas is of a kind, or may be."""
        return self._unread or (group, kind) in self._kinds

    def shards(self) -> list[Object]:
        return [obj for key, obj in self._found.items() if key.resource == SHARDS]

    def _get(self, resource: str, name: str) -> Object | None:
        return self._found.get(Key(resource, self._cluster, "", name))


def _kind_of(manifest: Object) -> tuple[str, str]:
    """Group and kind that a schema says, which may be none, or anything."""
    spec = manifest.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(names, dict):
        return "", ""
    return str(spec.get("group")), str(names.get("kind"))

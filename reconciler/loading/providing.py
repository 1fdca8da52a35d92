"""What a provider may do to the schemas that it serves: others rely on them.

Called by judge for a workspace that is judged whole. A schema may take more than the one that is served; one that takes
less holds the provider, unless its export says that it shall. A schema of the same name is the one that consumers are
served with, so it may never take less.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS, SCHEMAS
from apiserver.registry import keptschemas
from apiserver.registry.exportspec import offered_schemas
from apiserver.storage.protocol import ReadView
from reconciler.layout.errors import LayoutError
from reconciler.loading.consumers import is_stored
from reconciler.loading.content import WorkspaceContent
from reconciler.loading.render import DeclaredObject
from reconciler.plan.narrowing import ALLOWED, allowed_by, change_named, narrower_resource, shown

Object = dict[str, Any]


class Providing:
    """Of the workspace with this logical cluster. `content`: all that it is to hold."""

    def __init__(self, store: ReadView, cluster: str, content: WorkspaceContent) -> None:
        self._store, self._cluster, self._content = store, cluster, content

    def problems(self) -> list[LayoutError]:
        return [*self._renewed(), *self._replaced()]

    def _renewed(self) -> Iterator[LayoutError]:
        """Schemas that are there already, or were, and take less now."""
        for key, declared in self._content.declared.items():
            if key.resource != SCHEMAS:
                continue
            served = (narrower_resource(each["spec"], declared.obj["spec"]) for each in self._served(key.name))
            why = next(filter(None, served), None)
            if why:
                text = f"takes less than it did, and others are served with it: {shown(why)}"
                yield _problem(declared, text, "put it back, and give what is new another name")

    def _replaced(self) -> Iterator[LayoutError]:
        """Schemas that an export offers instead of what it offered."""
        for record in self._store.scan(EXPORTS, self._cluster).records:
            export = self._content.declared.get(record.key)
            if export is None:
                continue
            before = offered_schemas(orjson.loads(record.value))
            served = {_resource(s): s for name in before for s in reversed(self._served(name))}
            for name in offered_schemas(export.obj):
                declared = self._content.declared.get(Key(SCHEMAS, self._cluster, "", name))
                old = served.get(_resource(declared.obj)) if declared is not None else None
                if declared is not None and old is not None and old["metadata"]["name"] != name:
                    yield from _narrower(export, old, declared)

    def _served(self, name: str) -> list[Object]:
        """What stands under that name and what went, first what stands there. Of what was made through the API a commit
        knows nothing, once that has gone."""
        there = self._store.get(Key(SCHEMAS, self._cluster, "", name))
        went = [orjson.loads(each.value) for each in keptschemas.kept(self._store, self._cluster, name)]
        return [*([orjson.loads(there.value)] if there is not None else []), *(e for e in went if not is_stored(e))]


def _narrower(export: DeclaredObject, old: Object, new: DeclaredObject) -> Iterator[LayoutError]:
    why = narrower_resource(old["spec"], new.obj["spec"])
    turn = change_named(old, new.obj)
    if not why or turn in allowed_by(export.obj):
        return
    text = f"takes less than {old['metadata']['name']}, which APIExport {export.key.name} serves: {shown(why)}"
    hint = f'loosen it, or add to the export ({export.manifest.place}) the annotation {ALLOWED}: "{turn}"'
    hint += ", and consumers whose manifests do not fit it keep the old"
    yield _problem(new, text, hint)


def _problem(declared: DeclaredObject, text: str, hint: str) -> LayoutError:
    return declared.manifest.error(f"APIResourceSchema {declared.key.name} {text}", hint)


def _resource(schema: Object) -> tuple[str, str]:
    return schema["spec"].get("group") or "", schema["spec"]["names"]["plural"]

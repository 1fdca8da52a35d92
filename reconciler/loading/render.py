"""A manifest into the object that the workspace should hold: resolved kind, defaults, and every field error.

The same strategies as for a write through the API (registry/strategy.py), so that git cannot declare what kubectl could
not create. Unknown fields are errors here: in git there is nobody to read a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

import orjson

from apiserver.model import marks, reserved
from apiserver.model.errors import Cause
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key
from apiserver.model.storagenames import CRDS, SYNC_TARGETS, WORKSPACES
from apiserver.registry import strategy
from apiserver.registry.behaviours.definitions import reserved_in
from apiserver.registry.conversion import stored
from apiserver.registry.kinds import KindTable, ServedKind
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.prepared import Prepared
from reconciler.plan import system

Object = dict[str, Any]


FindLine = Callable[[Manifest, str], int]
_LONGEST, _NEAR = 63, 0.8
"""Of a kind that is not there: how long it may be to be compared with those that are, and how alike one has to be."""
_UNTOLD = "what is encrypted there is not what the kind takes: base64 in data, text in stringData"

Accepted = Callable[[Manifest], Object | None]
"""What a manifest said of an object when it was accepted last, where that excuses it: of a custom resource whose
definition became stricter, what did not change since may stay. None where nothing is excused."""


class DeclaredObject(NamedTuple):
    """One object that a workspace declares. An origin without a path: no file says so."""

    key: Key
    kind: ServedKind
    obj: Object
    manifest: Manifest


def key_of(manifest: Manifest, kinds: KindTable, cluster: str) -> Key | None:
    """Where the object stands in the store; None for a kind that is not served."""
    kind = kinds.by_kind(*manifest.gvk)
    if kind is None:
        return None
    namespace = (manifest.namespace or "default") if kind.namespaced else ""
    return Key(kind.storage, cluster, namespace, manifest.name)


def _declarable(kind: ServedKind, manifest: Manifest) -> bool:
    """Reviews are not stored, and what can only be read is made by Treeplane alone."""
    return bool(kind.storage) and ("create" in kind.verbs or not manifest.origin.path)


def itself(manifest: Manifest) -> Object:
    """The Accepted of manifests that are known to have been accepted, of whatever kind."""
    return manifest.value


def _ratcheted(kind: ServedKind, obj: Object, before: Object, unknown: list[str]) -> tuple[list[str], list[Cause]]:
    """Of an object's unknown fields and errors those that are new against `before`, a manifest's value."""
    old: Object = orjson.loads(orjson.dumps(before))
    old.pop("status", None)
    known = set(strategy.unknown_fields(kind, old))
    strategy.prepare(kind, old)
    return [f for f in unknown if f not in known], strategy.prepare(kind, obj, old)


def _complete(kind: ServedKind, namespace: str, obj: Object) -> tuple[list[str], list[Cause]]:
    """Makes a manifest's value an object, in place; its unknown fields and errors."""
    obj.pop("status", None)
    if kind.namespaced:
        obj["metadata"]["namespace"] = namespace
    return strategy.unknown_fields(kind, obj), strategy.prepare(kind, obj)


def _taken(kind: ServedKind, namespace: str, obj: Object) -> Object | None:
    """The same where nothing is wrong with it."""
    unknown, causes = _complete(kind, namespace, obj)
    return obj if not unknown and not causes else None


def refused(
    kind: ServedKind, manifest: Manifest, causes: list[Cause], line: FindLine, hint: str = ""
) -> Iterator[LayoutError]:
    """What the rules of a kind have against the object of a manifest, where it says so."""
    for cause in causes:
        field = strategy.in_manifest(kind, cause.field)
        where = f"{field}: " if field else ""
        yield _problem(manifest, field, f"{kind.kind} {manifest.name}: {where}{cause.message}", hint, line)


def _problem(manifest: Manifest, field: str, text: str, hint: str, line: FindLine) -> LayoutError:
    return LayoutError(str(manifest.origin), line(manifest, field) if field else manifest.line, 0, text, hint)


_prepared = Prepared()


class Renderer:
    """Renders manifests of one workspace. `line` finds where in the file a field stands; it and `accepted` are asked
    only for errors."""

    def __init__(self, kinds: KindTable, cluster: str, line: FindLine, accepted: Accepted | None = None) -> None:
        self.kinds = kinds
        self.cluster = cluster
        self._line = line
        self._accepted = accepted

    def render(self, manifest: Manifest) -> tuple[DeclaredObject | None, list[LayoutError]]:
        kind = self.kinds.by_kind(*manifest.gvk)
        key = key_of(manifest, self.kinds, self.cluster)
        if kind is None or key is None or not _declarable(kind, manifest):
            return None, [self._unknown(manifest)]
        if manifest.namespace and not kind.namespaced:
            text = f"{kind.kind} {manifest.name} is cluster-scoped but names the namespace {manifest.namespace}"
            return None, [self._problem(manifest, "metadata.namespace", text, "remove metadata.namespace")]
        obj, problems = self._prepare(kind, key.namespace, manifest)
        if manifest.path and kind.storage != WORKSPACES and self._accepted is not itself and not problems:
            problems = self._reserved(kind, manifest, obj)
        if problems:
            return None, problems
        storage = self.kinds.preferred(kind.group, kind.resource)
        if storage is not None and storage.version != kind.version and storage.conversion is not None:
            text = f"{kind.kind} {manifest.name}: only a webhook turns {kind.api_version} into {storage.api_version}"
            hint = f"write it in {storage.api_version}, the version in which it is stored: a commit asks no webhook"
            return None, [self._problem(manifest, "apiVersion", text, hint)]
        if storage is not None and storage.version != kind.version:
            obj = stored(obj, storage)
        if kind.storage == SYNC_TARGETS:
            # It follows from the name, so it is there from the first read on, also after a recovery.
            labels = obj["metadata"].get("labels") or {}
            obj["metadata"]["labels"] = {**labels, marks.TARGET_KEY: sync_target_key(key.cluster, key.name)}
        return DeclaredObject(key, kind, obj, manifest), []

    def trusted(self, manifest: Manifest, obj: Object | None = None) -> DeclaredObject:
        """As `render`, for an object that Treeplane itself made complete: nothing is checked or defaulted. `obj`: what
        the manifest becomes, if that is not what it says."""
        kind = self.kinds.by_kind(*manifest.gvk)
        key = key_of(manifest, self.kinds, self.cluster)
        assert kind is not None and key is not None
        return DeclaredObject(key, kind, manifest.value if obj is None else obj, manifest)

    def _reserved(self, kind: ServedKind, manifest: Manifest, obj: Object) -> list[LayoutError]:
        """What a file says that is the system's to say. A Workspace is looked at where its file is read."""
        found = []
        for mark in reserved.said(obj["metadata"]):
            of_workspace = mark.key in reserved.OF_WORKSPACES
            hint = "a workspace's own workspace.yaml says it" if of_workspace else "remove it: the server sets it"
            found.append(self._problem(manifest, mark.field, f"{kind.kind} {manifest.name}: {mark.said}", hint))
        for cause in reserved_in(obj, {}) if kind.builtin and kind.storage == CRDS else ():
            text = f"{kind.kind} {manifest.name}: {cause.message}"
            found.append(self._problem(manifest, cause.field, text, "it is the server's: take another one"))
        return found

    def _prepare(self, kind: ServedKind, namespace: str, manifest: Manifest) -> tuple[Object, list[LayoutError]]:
        known, said = None, b""
        if not manifest.told:
            return self._prepare_untold(kind, namespace, manifest)
        if manifest.alike is not None:
            known = _prepared.like(kind, namespace, manifest.alike, partial(_taken, kind, namespace))
        if known is None:
            said = orjson.dumps(manifest.value)
            known = _prepared.find(kind, namespace, said)
        if known is not None:
            return known, []
        obj: Object = orjson.loads(said)
        unknown, causes = _complete(kind, namespace, obj)
        if not unknown and not causes:
            _prepared.keep(kind, namespace, said, obj)
            return obj, []
        if self._accepted is itself:
            return obj, []
        before = self._accepted(manifest) if kind.custom and self._accepted is not None else None
        if before is not None:
            unknown, causes = _ratcheted(kind, obj, before, unknown)
        return obj, self._problems(kind, manifest, unknown, causes)

    def _prepare_untold(self, kind: ServedKind, namespace: str, manifest: Manifest) -> tuple[Object, list[LayoutError]]:
        """What was encrypted is remembered nowhere, and no error says it: what a rule has against a value may quote
        it."""
        obj: Object = orjson.loads(orjson.dumps(manifest.value))
        unknown, causes = _complete(kind, namespace, obj)
        if self._accepted is itself or manifest.locked:
            return obj, []
        causes = [replace(cause, message=_UNTOLD) for cause in causes]
        return obj, self._problems(kind, manifest, unknown, causes)

    def _problems(
        self, kind: ServedKind, manifest: Manifest, unknown: list[str], causes: list[Cause]
    ) -> list[LayoutError]:
        problems = [self._problem(manifest, f, f'unknown field "{f}" in {kind.kind} {manifest.name}') for f in unknown]
        return problems + list(refused(kind, manifest, causes, self._line))

    def _problem(self, manifest: Manifest, field: str, text: str, hint: str = "") -> LayoutError:
        return _problem(manifest, field, text, hint, self._line)

    def _nearest(self, kind: str) -> ServedKind | None:
        """The kind that a mistyped one may mean."""
        if len(kind) > _LONGEST:
            return None
        served = {each.kind: each for each in self.kinds.all()}
        near = get_close_matches(kind, served, 1, _NEAR)
        return served[near[0]] if near else None

    def _unknown(self, manifest: Manifest) -> LayoutError:
        gvk = manifest.gvk
        if self.kinds.by_kind(*gvk) is not None:
            text = f"{gvk.kind} {manifest.name} is a question to the API server, which keeps no such object"
            return manifest.error(text, "remove it")
        text = f'no kind "{gvk.kind}" in apiVersion "{gvk.api_version}"'
        other = next((k for k in self.kinds.all() if k.kind == gvk.kind), None)
        if other is not None:
            hint = f"it is served here as {other.api_version}"
        elif (near := self._nearest(gvk.kind)) is not None:
            hint = f"did you mean {near.kind} of {near.api_version}?"
        elif export := system.export_of(gvk.group, gvk.kind):
            reference = f"{{path: {system.COMPUTE}, name: {export}}}"
            hint = f"bind the export {export} of {system.COMPUTE}: an APIBinding with spec.reference.export {reference}"
        else:
            hint = "declare its CustomResourceDefinition, or an APIBinding to an export that offers it"
        return manifest.error(text, hint)

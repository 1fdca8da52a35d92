"""Kinds: which ones the workspace is to serve, by its definitions and bindings against what others provide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from apiserver.model import clock
from apiserver.model.origins import BOOTSTRAP, TYPED
from apiserver.model.storagenames import BINDINGS, EXPORTS
from apiserver.registry.builtins.catalogue import kinds_having
from apiserver.registry.kinds import KUBERNETES, KindTable, builtins_of
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacetypes import ResolvedType
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.case import Recorded
from reconciler.loading.consequences import held_among, kind_in
from reconciler.loading.consumers import named
from reconciler.loading.content import WorkspaceContent
from reconciler.loading.defaultclaims import accept_claims
from reconciler.loading.identities import Keyring, former, own
from reconciler.loading.phases.effecting import uids_of
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.ratcheting import accepted, accepted_once
from reconciler.loading.resolving import Resolving
from reconciler.loading.sources import generated
from reconciler.plan import bootstrap, computed
from reconciler.plan.apis import Apis, ServedSoFar
from reconciler.plan.bindings import BindingInShort

_KINDS_FIRST = kinds_having(lambda kind: kind.defines_kinds)


def find_kinds(at: Judgement) -> None:
    """Of one that is served: it keeps the names that it has."""
    mode = at.record.writes if at.record.served else at.typed.kind.writes
    at.gathered.accepted = accepted(at.gathered, mode or at.grounds.site.writes)
    _find(at, Resolving.served)


def bring_kinds_back(at: Judgement) -> None:
    """As the status branch knows them."""
    recorded = at.case.recorded
    assert recorded is not None
    at.gathered.accepted = accepted_once(recorded)
    _find(at, lambda resolving: resolving.remembered(recorded))
    if at.content.apis is not None:
        at.content.problems.extend(_unbound(at, recorded))


def _unbound(at: Judgement, recorded: Recorded) -> Iterator[LayoutError]:
    """Bindings whose providers are not back, of which it is recorded what they were bound to: that would be lost. Where
    nothing is said of one it is bound to what is offered once that is there."""
    apis, world = at.content.apis, at.grounds.world
    said = {name: BindingInShort.from_json(found).bound for name, found in recorded.summary.bindings.items()}
    for key, declared in at.content.declared.items():
        if key.resource != BINDINGS or said.get(key.name) is None or apis is None:
            continue
        path, name = named(declared.obj, at.case.path)
        provider = world.record(path)
        if apis.bindings[key.name]["phase"] != "Bound" and provider is not None and not provider.served:
            text = f"it was bound to APIExport {path}:{name}, and workspace {path} is not served"
            manifest = declared.manifest
            waits_for = path if provider.errors else ""
            hint = f"it comes back once workspace {path} does"
            yield LayoutError(manifest.path, manifest.line, 0, text, hint, waits_for)


def _find(at: Judgement, past_of: Callable[[Resolving], ServedSoFar]) -> None:
    record, gathered, builtins = at.record, at.gathered, builtins_of(at.record.builtins, at.record.path)
    served = at.case.record is not None and at.case.record.served
    was = at.grounds.site.catalog.kinds(record.cluster) if served else builtins
    content = at.content = WorkspaceContent(was, was)
    content.problems.extend(gathered.problems)
    if not gathered.complete:
        content.rest = gathered.new
        return
    manifests = [*_brought(record, at.typed.kind), *gathered.new]
    content.rest = [m for m in manifests if m.gvk.kind not in _KINDS_FIRST]
    first = [m for m in manifests if m.gvk.kind in _KINDS_FIRST]
    content.declare(first, builtins, record.cluster, gathered)
    _identify(at)
    accept_claims(at, resolving(at))
    _resolve(at, builtins, past_of)


def _identify(at: Judgement) -> None:
    """The exports' identities, and what they have by themselves: Secrets and endpoint slices. With an export that goes
    its own goes."""
    content, cluster = at.content, at.record.cluster
    exports = [declared.obj for key, declared in content.declared.items() if key.resource == EXPORTS]
    keyring = Keyring(at.grounds.site.identities, at.case.path, cluster, at.known.identities, content.rest)
    content.identities = {export["metadata"]["name"]: keyring.of(export) for export in exports}
    content.rest = [*own(exports, content.identities), *content.rest]
    at.gathered.old += former(m.name for m in at.gathered.old if m.gvk.kind == "APIExport")


def resolving(at: Judgement) -> Resolving:
    """Of the content as far as it is declared."""

    def identity(name: str) -> str:
        return at.content.identities[name].hash

    return Resolving(at.grounds.world, identity, uids_of(at), at.case, at.record.cluster, at.content.declared)


def _resolve(at: Judgement, builtins: KindTable, past_of: Callable[[Resolving], ServedSoFar]) -> None:
    here = resolving(at)
    past = past_of(here)
    if at.keep:
        past = replace(past, keep=past.keep | at.keep)
    at.content.apis = here.resolve(builtins, past)
    at.content.kinds = at.content.apis.kinds
    held = held_among(at.grounds.world, _unserved(at, at.content.apis))
    if held:
        at.content.lacks = lambda group, kind: kind_in(at.grounds.world, held, group, kind)


def _unserved(at: Judgement, found: Apis) -> Iterator[str]:
    """The other workspaces whose exports are bound by declarations, and offer nothing."""
    path = at.case.path
    for key, declared in at.content.declared.items():
        if key.resource == BINDINGS and found.bindings[key.name]["phase"] != "Bound":
            provider, _ = named(declared.obj, path)
            if provider != path:
                yield provider


def _brought(record: WorkspaceRecord, kind: ResolvedType) -> list[Manifest]:
    """What the workspace has for being of its type: default bindings, and what a cluster of Kubernetes starts with."""
    bindings = (computed.default_binding(record.cluster, path, name) for path, name in kind.bindings)
    found = generated(bindings, TYPED)
    if record.builtins == KUBERNETES:
        started = bootstrap.objects(
            builtins_of(record.builtins, record.path).groups(), clock.rfc3339(record.origin_time)
        )
        found += generated(started, BOOTSTRAP)
    return found

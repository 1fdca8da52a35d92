"""Follow: a workspace that is judged again since others provide something else, and in which nothing differs for it.

Where each binding keeps what it is bound to, or takes schemas under which the workspace's objects are what they are
(plan/widening), the bindings' statuses are all that changes: what the workspace declares is not read, and nothing of it
is judged. Nor is it where an export is gone, since who is bound to it keeps it.

That holds of a workspace that is where its commit leads it and of which the past says nothing: one that is held, or
whose bindings keep what they had or wait for names, may be better off with what is provided now. For that, and for
whoever this does not hold of, all other phases follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS
from apiserver.registry.kinds import builtins_of
from apiserver.registry.permissionclaims import accepted_by_default
from apiserver.storage.protocol import Record
from reconciler.loading.case import Verdict
from reconciler.loading.changeset import ChangeKind
from reconciler.loading.defaultclaims import ACCEPTED
from reconciler.loading.gather import Gatherer
from reconciler.loading.phases.effecting import effects_of
from reconciler.loading.phases.judgement import Go, Judgement, summary_of
from reconciler.loading.phases.publishing import seal
from reconciler.loading.resolving import said_otherwise
from reconciler.loading.statuses import complete
from reconciler.plan import apis
from reconciler.plan.apis import Apis, ServedSoFar
from reconciler.plan.exports import Bound, Export
from reconciler.plan.turned import named

Object = dict[str, Any]


def follow_providers(at: Judgement) -> Go | None:
    """Comes first, of a workspace that is looked at for its providers alone."""
    record = at.case.record
    if record is None or not record.served or record.errors or at.case.problems or not _is_where_it_leads(at):
        return None
    at.record, at.known = record, summary_of(at.grounds, at.case, record)
    if at.known.bindings or at.known.waiting or at.known.ending:
        return None
    stored = {r.key: r for r in at.grounds.store.scan(BINDINGS, record.cluster).records}
    bindings = {key: orjson.loads(r.value) for key, r in stored.items()}
    theirs = {key: obj for key, obj in bindings.items() if _provider(obj) not in ("", at.case.path)}
    bound = dict(_bound(theirs))
    if len(bound) < len(theirs):
        return None
    if not all(_accepts_what_is_claimed(at, obj) for obj in theirs.values()):
        return None
    found = _resolved(at, theirs, bound)
    if not _is_left_alone(at, found, bound):
        return None
    _restate(at, found, {key: (stored[key], obj) for key, obj in theirs.items()})
    return Go.DONE


def _accepts_what_is_claimed(at: Judgement, binding: Object) -> bool:
    """Of a binding that the workspace has by its type: others say themselves what they accept."""
    annotations, named = binding["metadata"].get("annotations") or {}, binding["spec"]["reference"]["export"]
    if annotations.get(marks.ORIGIN) != marks.SYSTEM or ACCEPTED in annotations:
        return True
    export = at.grounds.world.find_export(named.get("path") or at.case.path, named["name"])
    wanted = accepted_by_default(export.claims) if export is not None else []
    return bool(wanted == (binding["spec"].get("permissionClaims") or []))


def _is_where_it_leads(at: Judgement) -> bool:
    grounds, record = at.grounds, at.case.record
    base = grounds.served.of(record) if record is not None else None
    return Gatherer(grounds.site.sources).is_same(at.case, base)


def _provider(binding: Object) -> str:
    return str(binding["spec"]["reference"]["export"].get("path") or "")


def _bound(bindings: Mapping[Key, Object]) -> Iterator[tuple[str, Bound]]:
    """What those are bound to that are, and stay."""
    for key, obj in bindings.items():
        found = Bound.of(obj.get("status") or {})
        if found is not None and "deletionTimestamp" not in obj["metadata"]:
            yield key.name, found


def _resolved(at: Judgement, bindings: Mapping[Key, Object], bound: Mapping[str, Bound]) -> Apis:
    """Of these bindings alone: while none takes another name, nobody else's names matter."""
    world, case = at.grounds.world, at.case

    def read(named: str, what: Bound) -> Export | None:
        path, _, name = named.rpartition(":")
        return world.former_export(path, name, what)

    builtins, past = builtins_of(at.record.builtins, at.record.path), ServedSoFar(bound=bound, read=read)
    return apis.resolve(builtins, (), bindings.values(), world.find_export, case.path, case.moment.rfc3339, past)


def _is_left_alone(at: Judgement, found: Apis, bound: Mapping[str, Bound]) -> bool:
    """Whether each binding keeps what it is bound to, or takes something under which all objects are the same."""
    world = at.grounds.world
    return all(
        world.leaves_alone(found.turned[name]) if name in found.turned else Bound.of(status) == bound[name]
        for name, status in found.bindings.items()
    )


def _restate(at: Judgement, found: Apis, bindings: Mapping[Key, tuple[Record, Object]]) -> None:
    """The verdict: bindings say what they are bound to now."""
    effects, commit = effects_of(at), at.case.moment.commit
    for key, (record, obj) in bindings.items():
        status = complete(found.bindings[key.name], BINDINGS, obj)
        label, born = named("APIBinding", key.name), obj["metadata"]["creationTimestamp"]
        told = effects.since(label, status["conditions"], obj, born)
        effects.restate(record, {**status, "conditions": told})
    at.known.bindings = said_otherwise(found.bindings, found)
    changes = effects.changes
    at.verdict = Verdict(replace(at.record, head=commit) if changes else at.record, changes)
    if changes:
        changes.became = ChangeKind.CONFIGURED
    seal(at)

"""Declare: the manifests become objects of the kinds that there are, and what is wrong with them is found.

A provider's change holds no consumer: a binding whose export offers what the content does not fit keeps what it is
bound to, and the kinds are found anew. Where that does not help, the problems are those with what is offered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from apiserver.model import origins
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.builtins.catalogue import behaviour_of
from apiserver.registry.kinds import KindTable, ServedKind
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.case import Case
from reconciler.loading.content import WorkspaceContent
from reconciler.loading.gather import Gathered
from reconciler.loading.leaving import still_there
from reconciler.loading.phases.judgement import Go, Judgement
from reconciler.loading.render import DeclaredObject, Renderer, itself, key_of, refused
from reconciler.loading.typecircles import TypeCircles
from reconciler.plan import apis, bootstrap
from reconciler.plan.exports import Turn
from reconciler.plan.residue import is_runtime

NAMESPACES = "namespaces"


def declare(at: Judgement) -> Go | None:
    """What does not fit what others offer by now keeps its binding where it is, and needs no excuse there."""
    turned = _turned(at.case, at.content.apis).values()
    return _declare(at, {kind for turn in turned for kind in turn.kinds()} if turned else ())


def declare_again(at: Judgement) -> Go | None:
    """What was accepted once is put back."""
    return _declare(at, ())


def _declare(at: Judgement, strict: Collection[tuple[str, str]]) -> Go | None:
    content, gathered, cluster = at.content, at.gathered, at.record.cluster
    content.declare(content.rest, content.kinds, cluster, gathered, strict)
    content.rest = []
    if content.kinds is not content.was:
        content.problems.extend(_changed_hands(content))
    _look_back(gathered, cluster, content)
    content.problems.extend(_against_rules(at))
    content.problems.extend(_leaving_still(at))
    store, path = at.grounds.store, at.case.path
    content.problems.extend(TypeCircles(store, cluster, path, content, complete=gathered.complete).problems())
    _check_others(at)
    more = _unfit(at)
    if more:
        at.first = at.first or content
        at.keep |= more
        return Go.KINDS
    if at.first is not None and not set(content.problems) <= set(at.first.problems):
        at.content = at.first
    return None


def _unfit(at: Judgement) -> frozenset[str]:
    """Bindings that take something else than they were bound to, which objects of the workspace do not fit."""
    return frozenset(
        name
        for name, turn in _turned(at.case, at.content.apis).items()
        if turn.kinds() & at.content.faulty or _leaves_behind(turn.dropped(), at)
    )


def _leaves_behind(storages: Iterable[str], at: Judgement) -> bool:
    """Whether there are objects of resources that would be served no more. What git removes with this is none."""
    return any(
        record.key not in at.content.removed
        for storage in storages
        for record in at.grounds.store.scan(storage, at.record.cluster).records
    )


def _look_back(gathered: Gathered, cluster: str, out: WorkspaceContent) -> None:
    """Which objects git said before, and which of them it says no more."""
    renderer = Renderer(out.was, cluster, lambda manifest, _: manifest.line, itself)
    for manifest in gathered.old:
        key = key_of(manifest, out.kinds, cluster) or key_of(manifest, out.was, cluster)
        if key is None:
            continue
        now = out.declared.get(key)
        if now is None:
            out.removed[key] = manifest
        elif _same(now, manifest):
            # Of what a schema knows no more git's part goes; what another default had filled in stays.
            out.old[key] = now.obj if _same_schema(now.kind, out.was) else manifest.value
        else:
            rendered, _ = renderer.render(manifest)
            out.old[key] = rendered.obj if rendered is not None else {"metadata": {}}


def _against_rules(at: Judgement) -> Iterator[LayoutError]:
    """What is there already may not become this, no more than by a request: of kinds that others build on."""
    for key, old in at.content.old.items():
        now = at.content.declared[key]
        behaviour = behaviour_of(now.kind)
        record = at.grounds.store.get(key) if behaviour.remedy and old is not now.obj else None
        if record is not None and "spec" in old:
            status = codec.decode(record.value, 0).get("status")
            causes = behaviour.check_update({**old, "status": status}, now.obj)
            yield from refused(now.kind, now.manifest, causes, at.gathered.line, behaviour.remedy)
    yield from _against_what_was_made(at)


def _against_what_was_made(at: Judgement) -> Iterator[LayoutError]:
    """The same of what was made through the API, and what a file declares from now on."""
    declared, old = at.content.declared, at.content.old
    if at.look is None:
        return
    new = [key for key, each in declared.items() if key not in old and behaviour_of(each.kind).remedy]
    for key, record in at.stored(new).items():
        if is_runtime(record.value):
            now = declared[key]
            causes = behaviour_of(now.kind).check_update(codec.decode(record.value, 0), now.obj)
            remedy = "say what is there already, or delete what was made through the API first"
            yield from refused(now.kind, now.manifest, causes, at.gathered.line, remedy)


def _leaving_still(at: Judgement) -> Iterator[LayoutError]:
    """A definition that comes back while what was of its kinds has not gone yet would be no other than the one that
    ends, and end with it."""
    for key in still_there(at.grounds.store, at.known.ending, at.record.cluster):
        declared = at.content.declared.get(key)
        if declared is not None:
            text = f"{declared.kind.kind} {key.name} is being deleted still: objects of its kinds wait for finalizers"
            yield declared.manifest.error(text, "it is taken as soon as they are gone; or take it out again")


def _check_others(at: Judgement) -> None:
    """Against what is stored already: namespaces that are used, objects that stand in files not looked at."""
    out, gathered = at.content, at.gathered
    for key, declared in out.declared.items():
        if key.namespace and not _has_namespace(key.namespace, at):
            text = f"{declared.kind.kind} {key.name} is in the namespace {key.namespace}, which is not declared"
            hint = f"add a manifest: {{apiVersion: v1, kind: Namespace, metadata: {{name: {key.namespace}}}}}"
            out.problems.append(declared.manifest.error(text, hint))
    if gathered.complete or at.case.record is None:
        return
    for key, declared in out.declared.items():
        record = at.grounds.store.get(key)
        if record is None or declared.manifest.locked:  # of which the store may say what was so long ago
            continue
        path = origins.file_of(codec.decode(record.value, 0))
        if path and path not in gathered.changed:
            text = f"{declared.kind.kind} {key.name} is declared twice: also in {path}"
            out.problems.append(declared.manifest.error(text))
            out.problems.append(LayoutError(path, 0, 0, f"{text.partition(':')[0]}: also in {declared.manifest.path}"))


def _has_namespace(name: str, at: Judgement) -> bool:
    """A namespace that exists at runtime alone is none to build on: a clone would not have it."""
    key = Key(NAMESPACES, at.record.cluster, "", name)
    if key in at.content.declared or at.gathered.complete:
        return key in at.content.declared
    found = at.grounds.store.get(key)
    return found is not None and (name in bootstrap.NAMESPACES or not is_runtime(found.value))


def _turned(case: Case, found: apis.Apis | None) -> Mapping[str, Turn]:
    """Bindings that take what others offer, and not what they were bound to."""
    turned = found.turned.items() if found is not None else ()
    return {name: turn for name, turn in turned if turn.export.path != case.path}


def _changed_hands(content: WorkspaceContent) -> Iterator[LayoutError]:
    """Manifests of a kind that another definition brings than the one that brought it so far: they would become other
    objects, and those that were there would go."""
    for key, declared in content.declared.items():
        kind, manifest = declared.kind, declared.manifest
        before = content.was.preferred(kind.group, kind.resource) if manifest.origin.path else None
        if before is not None and before.storage != kind.storage:
            text = f"{kind.kind} {key.name}: the kind changes hands, and this is no object of the new definition"
            hint = "remove it in the commit that removes the old one, and add it in a later one"
            yield manifest.error(text, hint)


def _same(now: DeclaredObject, before: Manifest) -> bool:
    return now.manifest is before or now.manifest.value == before.value


def _same_schema(kind: ServedKind, was: KindTable) -> bool:
    """Whether a manifest means the object that it meant."""
    before = was.by_kind(kind.group, kind.version, kind.kind)
    return before is not None and before.schema.digest == kind.schema.digest

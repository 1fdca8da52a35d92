"""What has to be asked about first: whose the workspace is, what it takes of others, promises to those who rely on it,
and what a commit takes away from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.auth.pushing import may_take
from apiserver.auth.user import User
from apiserver.model import commits, paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import TYPES, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.reliance import Named
from apiserver.registry.workspacetypes import wanted
from reconciler.layout.errors import LayoutError
from reconciler.loading.case import was_served
from reconciler.loading.copies import PLACES
from reconciler.loading.gather import Gatherer
from reconciler.loading.guard import Taken
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.providing import Providing
from reconciler.loading.reliances import is_served, said_by
from reconciler.plan.deletions import SHARE_FROM, RefusedDeletion
from reconciler.plan.merge import merged
from reconciler.plan.trespasses import Relying, Trespass, Trespasses

Object = dict[str, Any]

_NOBODY = User("", ())
"""May have taken what ships with Treeplane, which is everybody's."""


def keep_promises(at: Judgement) -> None:
    """A provider's schemas may not take less than they did."""
    if at.content.apis is not None and at.record.served:
        at.content.problems += Providing(at.grounds.store, at.record.cluster, at.content).problems()


def ask_owners(at: Judgement) -> None:
    """What was touched without a right is a problem, for as long as it is not what is served; so is what it would take
    of others, for as long as it says so."""
    case, grounds = at.case, at.grounds
    if was_served(case.recorded):
        return  # what is known of it comes back with it
    base = grounds.served.of(case.record) if case.record is not None else None
    # A pin hides what its own directory has; of a workspace with a source that is nothing.
    found, pinned = case.trespasses, bool(case.pinned.said) and not case.sourced.there
    if found and not (case.stays or pinned) and Gatherer(grounds.site.sources).is_same_here(case, base):
        found = Trespasses()
    if case.sourced.there:
        found = Trespasses((*(each for each in found if not commits.parse(each.commit).repository), *_takings(at)))
    said = _said(at) if any(each.takes for each in found) else frozenset()
    # What is hidden, since nobody might make the workspace, or its content is read elsewhere, may be said again.
    hidden = bool(found.of_files) or case.content != (case.tree, case.directory)
    found = Trespasses(each for each in found if each.takes is None or hidden or each.takes in said)
    at.known.trespasses = found.as_json()
    # One that is pinned is not served what was touched; when that is over it is asked about.
    at.content.problems.extend(
        each.error for each in found if (each.takes in said if each.takes else not pinned or each.asks != case.path)
    )
    at.content.problems.extend(_unasked(at))
    _ask_for_type(at)


def _takings(at: Judgement) -> Iterator[Trespass]:
    """What the workspace's source would newly have it take of others without a right of whoever stands for it. That is
    asked each time, since his rights may be others by now."""
    case, remotes = at.case, at.grounds.site.remotes
    whose = tree.workspace_of(at.grounds.store, case.sourced.of) if case.sourced.of else at.record
    rights = remotes.rights(whose) if remotes is not None and whose is not None and case.sourced.said else None
    if rights is None or rights.voucher.is_free:
        return
    commit, wanted = case.sourced.commit, _said(at)
    for manifest in at.gathered.new if wanted else ():
        for each in sorted(said_by((manifest,), case.path) & wanted):
            if not rights.may_take(each.named):
                who = rights.voucher.said.user or f"nobody, since {rights.voucher.why}"
                hint = f"take it back, or have whoever administers {each.named.path} give that right"
                message = f"{manifest.gvk.kind} {manifest.name}, for which {who} stands: {each.named.missing}"
                yield Trespass(str(commit), str(manifest.origin), message, hint, each.named.path, each)


def _unasked(at: Judgement) -> Iterator[LayoutError]:
    """What a program would have the workspace take of others: who pushed it was not asked about that. Who stands for
    a source is, when that is judged (`_takings`), and so of what programs make there."""
    case, grounds = at.case, at.grounds
    for manifest in at.gathered.new if grounds.site.owners and not case.sourced.said else ():
        if not manifest.origin.generator or not manifest.origin.path:
            continue
        for relying in sorted(said_by((manifest,), case.path)):
            path = tree.path_named(grounds.store, relying.named.path) or relying.named.path
            free = path == case.path or may_take(grounds.store, relying.named, _NOBODY)
            if not (free or is_served(grounds.store, case.record, relying)):
                text = (
                    f"{manifest.gvk.kind} {manifest.name} takes something of {path}, and comes of "
                    f"{manifest.origin.generator}: where spec.safety.owners is true, that has to be written as it is"
                )
                yield manifest.error(text, "write it in a file of its own, outside of what is rendered")


def _said(at: Judgement) -> frozenset[Relying]:
    """What the workspace would take of others that it is not served with, or is by a pin that is over alone."""
    case, store = at.case, at.grounds.store
    said, ref = said_by(at.gathered.new, case.path), at.typed.kind.ref
    said.add(Relying(f"{WORKSPACES}/{paths.base(case.path)}", Named(TYPES, ref.path, ref.name)))
    if case.record is not None and case.record.pin and not case.pinned.said:
        return frozenset(said)
    return frozenset(each for each in said if not is_served(store, case.record, each))


def _ask_for_type(at: Judgement) -> None:
    """Which type a workspace.yaml means that does not say so in full may be another by now than when it was pushed."""
    case, manifest, ref = at.case, at.gathered.workspace, at.typed.kind.ref
    at.known.vouched = case.vouched
    if not case.vouched or manifest is None:  # nobody may make it, or it cannot be read: then it may mean one later
        return
    if all(wanted(manifest.value)):
        at.known.vouched = ""
        return
    if str(ref) != case.vouched:
        text = f"its type is {ref} by now, and was {case.vouched} when it was pushed: nobody was asked about that"
        at.content.problems.append(manifest.error(text, "name it in spec.type, with its path"))
    at.known.vouched = case.vouched if at.content.problems else ""


def ask_for_losses(at: Judgement) -> None:
    """What of what the commit takes away has to be allowed first is a problem like any other, found last."""
    at.refused = _losses(at) if not at.content.problems and at.record.served else None
    if at.refused is not None:
        at.content.problems.append(LayoutError(at.record.directory or at.case.path, 0, 0, str(at.refused)))


def _losses(at: Judgement) -> RefusedDeletion | None:
    guard, content = at.grounds.guard, at.content
    edited = _edited(at)
    # What no file said is no loss of anybody's: it comes and goes with what treeplane.yaml says of it.
    removed = {key: manifest for key, manifest in content.removed.items() if manifest.origin.path}
    if guard is None or not (removed or edited):
        return None
    # Of how many is known only once all files are read, and matters only for many.
    total = len(content.old) + len(removed) if at.gathered.complete else 0
    if not at.gathered.complete and len(removed) < SHARE_FROM:
        total = SHARE_FROM * len(removed)
    return guard.problem(at.record, Taken(removed, edited, total, content.kinds, at.case.sourced.allows), at.known)


def _edited(at: Judgement) -> dict[Key, Object]:
    """What decides where copies are, as it will be where it is edited."""
    content = at.content
    changed = [k for k, d in content.declared.items() if k.resource in PLACES and content.old.get(k) is not d.obj]
    out = {}
    for key, record in at.grounds.stored(changed).items():
        out[key] = merged(content.old.get(key), content.declared[key].obj, orjson.loads(record.value))
    return out

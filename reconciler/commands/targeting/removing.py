"""`treeplane target remove`: first a sync target takes nothing new and is emptied, then its files go.

What runs there is the server's to tell. Who may not read it is told so, and nothing is taken for empty that nobody saw
empty. Copies that are still on a cluster when its SyncTarget goes stay there: nobody is left to remove them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from apiserver.model import clock
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FiledFile
from reconciler.commands.filing.desk import Desk
from reconciler.commands.targeting import declaredin, rights
from reconciler.commands.targeting.adding import secret_name
from reconciler.commands.targeting.admincluster import AdminCluster
from reconciler.commands.targeting.seen import TargetSeen
from reconciler.layout import edit
from reconciler.layout.errors import BadFile
from reconciler.syncing.lease import NAMESPACE
from reconciler.syncing.render import CLUSTER_LABEL

Object = dict[str, Any]

_NOT_READY = 1
_NAMED = 10


class TargetRemoval(NamedTuple):
    """`gone`: its files go; else it is cordoned and emptied first. `notes`: what the user should know, and do."""

    gone: bool
    notes: list[str]
    message: list[str]


def remove(desk: Desk, found: declaredin.InFile, seen: TargetSeen | None, *, force: bool) -> TargetRemoval:
    """Puts on the desk what there is to be written. `seen`: what the server tells of it, None where it serves none of
    that name. Raises Failure where it is emptied already, and is not empty."""
    name = found.manifest.name
    cordoned = bool((found.manifest.value.get("spec") or {}).get("unschedulable"))
    if not force and (not cordoned or seen is None or not seen.taken):
        _cordon(desk, found)
        return TargetRemoval(False, _goes_on(name, seen), [f"Empty the sync target {name}"])
    if not force and seen is not None and not seen.is_empty:
        raise Failure(
            "\n".join([f"{name} is emptied, and not empty yet:", *_running(seen)]),
            "what holds state moves by its own workspace alone (kubectl describe placement says how); "
            "--force removes it all the same, and leaves there what is there",
            _NOT_READY,
        )
    return TargetRemoval(True, _take_away(desk, found, seen), [f"Remove the sync target {name}"])


def remove_rights(
    cluster: AdminCluster, server: str, seen: TargetSeen | None, *, force: bool
) -> tuple[list[FiledFile], list[str]]:
    """Takes our account and its rights from the cluster, unless another sync target or server runs things there by
    them; what was done, and what is to be known."""
    labelled = cluster.get("namespaces", "-l", CLUSTER_LABEL)
    own = key_of(seen)
    others = [n for n in labelled if n["metadata"]["labels"][CLUSTER_LABEL] != own]
    if others and not force:
        text = "the rights on the cluster stay: another sync target, or another server, runs things there by them"
        return [], [f"{text} (--force takes them away all the same)"]
    wanted = [each for each in rights.objects() if each["kind"] != "Namespace"]
    done = cluster.delete(wanted)
    files = [FiledFile(f"{server} {each.name}", each.change, None) for each in done]
    return files, [f"the namespace {NAMESPACE} stays on the cluster: kubectl delete namespace {NAMESPACE}"]


def key_of(seen: TargetSeen | None) -> str:
    return seen.key if seen is not None else ""


def _cordon(desk: Desk, found: declaredin.InFile) -> None:
    value = found.manifest.value
    spec = {**(value.get("spec") or {}), "unschedulable": True}
    spec.setdefault("evictAfter", clock.rfc3339(time.time()))
    try:
        data = desk.read(found.file) or b""
        desk.write(found.file, edit.replace(data, found.file, found.manifest.index, {**value, "spec": spec}))
    except BadFile as error:
        raise Failure(str(error), "mend the file first", 2) from error


def _take_away(desk: Desk, found: declaredin.InFile, seen: TargetSeen | None) -> list[str]:
    name, secret = found.manifest.name, secret_name(found)
    notes = [
        f"no sync target stands behind the Location {location} any more: what asks for it runs nowhere new"
        for location in declaredin.left_alone(desk, found)
    ]
    if secret and not any(secret_name(each) == secret for each in declaredin.beside(desk, found)):
        desk.drop_secret(found.place, secret)
    try:
        desk.write(found.file, edit.remove(desk.read(found.file) or b"", found.file, found.manifest.index))
    except BadFile as error:
        raise Failure(str(error), "mend the file first", 2) from error
    if seen is not None and not seen.is_empty:
        notes += [f"what {name} runs stays on the cluster, and nobody changes it any more:", *_running(seen)]
        notes.append(f"there: kubectl delete namespaces -l {CLUSTER_LABEL}={seen.key}")
    return notes


def _goes_on(name: str, seen: TargetSeen | None) -> list[str]:
    if seen is None:
        again = f"treeplane target remove {name} (--force: at once)"
        return [f"no server tells of {name} yet; once it is pushed and served: {again}"]
    rest = f"then take it away: treeplane target remove {name}"
    if seen.is_empty:
        return [f"nothing runs on {name}; once this is served, {rest}"]
    return [
        f"{name} takes nothing new, and what runs there moves to other targets, where there are any:",
        *_running(seen),
        rest,
    ]


def _running(seen: TargetSeen) -> Sequence[str]:
    if seen.namespaces is None or seen.placements is None:
        return ["  (what runs there you may not read: that takes list on placements and namespaces of /clusters/*)"]
    told = [f"  namespace {each.namespace} of {each.workspace}" for each in seen.namespaces]
    told += [f"  placement {each.name} of {each.workspace}" for each in seen.placements] if not told else []
    more = len(told) - _NAMED
    return told if more <= 0 else [*told[:_NAMED], f"  and {more} more"]

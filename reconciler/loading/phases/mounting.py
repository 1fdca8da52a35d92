"""Mount: a workspace that is served elsewhere (registry/mounts) has nothing of its own, and nothing below it.

A workspace is a mount for good, of the object that it named when it appeared, or never is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from apiserver.model.reserved import settable
from apiserver.registry.mounts import reference_of
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.phases.judgement import Judgement


def find_mount(at: Judgement) -> None:
    said, old = at.gathered.workspace, at.gathered.old_workspace
    served = at.case.record is not None and at.record.served
    reference = reference_of(said.value) if said is not None else None
    was = reference_of(old.value) if old is not None else None
    if served and old is not None and was != reference:
        at.gathered.problems.append(_error(at, said, "mount is immutable", "recreate the workspace in two commits"))
    above = at.grounds.world.record(at.record.parent) if at.record.parent else None
    if above is not None and above.mounts:
        text = f"{above.path} is a mount: nothing stands below it"
        at.gathered.problems.append(_error(at, said, text, "move it, or take spec.mount out of what it stands in"))
    mounts = at.record.mounts if served else reference is not None
    if mounts:
        at.gathered.problems.extend(_of_its_own(at))
        for key in settable(said.value["metadata"]) if said is not None else ():
            text = f"{key} is said of a LogicalCluster, which a mount does not have"
            at.gathered.problems.append(_error(at, said, text, "say it of the workspace that is mounted"))
        at.gathered.new = []
        _take_nothing_of_its_type(at)


def _take_nothing_of_its_type(at: Judgement) -> None:
    """There is nothing that it could bring it into, and no LogicalCluster for a program to act on."""
    kind = replace(at.typed.kind, bindings=(), builtins="", initializers=(), terminators=())
    at.typed = at.typed._replace(kind=kind)
    at.typed.tell(at.known)
    at.record = replace(at.record, mounts=True, builtins="", initializers=[], terminators=[])


def _of_its_own(at: Judgement) -> Iterator[LayoutError]:
    for manifest in at.gathered.new:
        if manifest.path:
            text = f"{manifest.gvk.kind} {manifest.name}: {at.case.path} is a mount, which has nothing of its own"
            yield manifest.error(text, "move it to the workspace that is mounted")


def _error(at: Judgement, said: Manifest | None, text: str, hint: str) -> LayoutError:
    place, line = (str(said.origin), said.line) if said is not None else (at.case.path, 0)
    return LayoutError(place, line, 0, text, hint)

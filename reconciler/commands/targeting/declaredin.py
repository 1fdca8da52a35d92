"""What the files of a fleet declare about sync targets: which workspaces offer them, and in which file one stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from apiserver.model import selectors
from apiserver.model.counts import some_of
from apiserver.model.errors import StatusError
from reconciler.commands.failure import Failure
from reconciler.commands.filing.desk import Desk
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.plugin.meant import question

Object = dict[str, Any]

_GROUP = "workload.kcp.io"
_NAMED = 10


class InFile(NamedTuple):
    """A manifest, and the file that it stands in."""

    place: WorkspaceDir
    file: str
    manifest: Manifest


def manifests(desk: Desk, place: WorkspaceDir, kind: str) -> Iterator[InFile]:
    """The manifests of a kind in a workspace's own files."""
    word = kind.encode()
    for file, entry in desk.tree.files(place):
        data = desk.read(file) if entry.kind == "blob" else None
        if data is not None and word in data:
            yield from (InFile(place, file, m) for m in read(data, file).objects if m.gvk.kind == kind)


def offering(desk: Desk) -> list[WorkspaceDir]:
    """The workspaces that bind `workload.kcp.io`, so that SyncTargets may stand there."""
    return [place for place in desk.tree.workspaces() if any(map(_binds, manifests(desk, place, "APIBinding")))]


def workspace_for(desk: Desk, path: str) -> WorkspaceDir:
    """The one that is named, else the only one that offers targets. Raises Failure."""
    if path:
        return desk.workspace(path)
    found = offering(desk)
    if not found:
        raise Failure(
            f"no workspace of this fleet binds {_GROUP}, which brings SyncTargets",
            "bind it in one (docs/targets.md, The kinds), or name one whose type brings it: --workspace PATH",
            2,
        )
    if len(found) > 1:
        named = some_of([each.path for each in found], _NAMED)
        raise Failure(f"several workspaces have sync targets: {named}", "name one: --workspace PATH", 2)
    return found[0]


def find(desk: Desk, name: str, path: str = "") -> InFile:
    """The SyncTarget of that name, in the workspace that is named or in whichever. Raises Failure."""
    places = [desk.workspace(path)] if path else list(desk.tree.workspaces())
    found = [each for place in places for each in manifests(desk, place, "SyncTarget")]
    named = [each for each in found if each.manifest.name == name]
    if len(named) == 1:
        return named[0]
    if named:
        where = ", ".join(each.place.path for each in named[:_NAMED])
        raise Failure(f"several workspaces have a sync target {name}: {where}", "name one: --workspace PATH", 2)
    near = question(name, (each.manifest.name for each in found))
    raise Failure(f"no file declares a sync target {name}", near or "treeplane target list shows which there are", 2)


def there(desk: Desk, place: WorkspaceDir, name: str) -> InFile | None:
    """The SyncTarget of that name in a workspace."""
    return next((each for each in manifests(desk, place, "SyncTarget") if each.manifest.name == name), None)


def left_alone(desk: Desk, target: InFile) -> list[str]:
    """The Locations of its workspace behind which no other target stands."""
    targets = {each.manifest.name: _labels(each) for each in manifests(desk, target.place, "SyncTarget")}
    own = targets.pop(target.manifest.name, {})
    out = []
    for each in manifests(desk, target.place, "Location"):
        try:
            selector = selectors.from_object((each.manifest.value.get("spec") or {}).get("instanceSelector"))
        except (StatusError, ValueError, TypeError, AttributeError):
            continue  # it is held for that
        if selector.matches(own) and not any(map(selector.matches, targets.values())):
            out.append(each.manifest.name)
    return out


def beside(desk: Desk, target: InFile) -> list[InFile]:
    """The other SyncTargets of its workspace."""
    return [each for each in manifests(desk, target.place, "SyncTarget") if each.manifest.name != target.manifest.name]


def _labels(each: InFile) -> dict[str, str]:
    found: dict[str, str] = (each.manifest.value.get("metadata") or {}).get("labels") or {}
    return found


def _binds(each: InFile) -> bool:
    said = each.manifest.value.get("spec")
    export = ((said or {}).get("reference") or {}).get("export") if isinstance(said, dict) else None
    return isinstance(export, dict) and export.get("name") == _GROUP

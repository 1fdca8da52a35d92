"""Which kinds the APIExports have that a cluster is to run: those that the fleet's files declare, for who adds a sync
target and does not name them.

Whoever writes an export chooses what stands there, and what comes of it are rights on a cluster. So kinds of
Kubernetes' own groups are never taken from one: the cluster's administrator has to name them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from apiserver.model.kinds import GroupResource
from apiserver.registry.apiversions import export as in_version
from reconciler.commands.failure import USAGE, Failure
from reconciler.commands.filing.desk import Desk
from reconciler.commands.targeting.declaredin import manifests
from reconciler.plugin.meant import question

_V1ALPHA2 = "apis.kcp.io/v1alpha2"
_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_KUBERNETES = (".k8s.io", ".kubernetes.io")
_INSTEAD = "name the kinds that the cluster is to run of it: --kinds RESOURCE.GROUP"


def kinds_of(desk: Desk, exports: Sequence[tuple[str, str]]) -> list[GroupResource]:
    """Of exports, each by its workspace and its name. Raises Failure where the files do not say, or what they say
    cannot be taken."""
    return sorted({kind for path, name in exports for kind in _kinds(desk, path, name)})


def _kinds(desk: Desk, path: str, name: str) -> list[GroupResource]:
    place = desk.tree.find(path)
    if place is None:
        near = question(path, (each.path for each in desk.tree.workspaces()))
        raise Failure(f"no file declares a workspace {path}, so the kinds of {path}:{name} are not known",
                      f"{near}\n{_INSTEAD}" if near else _INSTEAD, USAGE)  # fmt: skip
    found = {each.manifest.name: each for each in manifests(desk, place, "APIExport")}
    if name not in found:
        near = question(name, found)
        raise Failure(f"no file of {path} declares an APIExport {name}, so its kinds are not known",
                      f"{near}\n{_INSTEAD}" if near else _INSTEAD, USAGE)  # fmt: skip
    where = f"{found[name].file}:{found[name].manifest.line}: the APIExport {name}"
    kinds = _named(found[name].manifest.value)
    if not kinds:
        raise Failure(f"{where} has no kinds that can be read", f"mend it, or {_INSTEAD}", USAGE)
    for kind in kinds:
        if not _RESOURCE.fullmatch(kind.resource) or not (kind.group == "" or _GROUP.fullmatch(kind.group)):
            raise Failure(f"{where} has a kind {kind.resource!r} in the group {kind.group!r}, which can be none",
                          f"mend it, or {_INSTEAD}", USAGE)  # fmt: skip
        if "." not in kind.group or kind.group.endswith(_KUBERNETES):
            raise Failure(f"{where} has {kind}, which is Kubernetes' own: rights on that are not given for an export",
                          f"if you mean it, {_INSTEAD}", USAGE)  # fmt: skip
    return kinds


def _named(obj: dict[str, Any]) -> list[GroupResource]:
    """Whatever a file has there; it may be held for that."""
    try:
        resources = in_version(obj, _V1ALPHA2)["spec"]["resources"]
        return [GroupResource(str(each.get("group") or ""), str(each["name"])) for each in resources]
    except (KeyError, TypeError, AttributeError, ValueError):
        return []

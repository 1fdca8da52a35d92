"""Where things stand on the status branch, and their canonical form.

The branch mirrors the layout of the desired one:

    fleet.yaml                                          fleet id, the newest store revision that was covered, and the
                                                        directories that lost their workspace.yaml alone
    schemas/<logical cluster>/<name>.yaml               APIResourceSchemas that their providers no longer have, but
                                                        consumers are served with
    workspaces/root/shop/web/_summary.yaml              the workspace's summary (plan/summary.py)
    workspaces/root/shop/web/_status/<namespace or _>/<resource>.<group>/<name>.yaml

Names that begin with an underscore cannot be workspaces. Files are YAML with sorted keys, so the same content is the
same bytes; what only means "still alive" and what depends on chance is left out.
"""

from __future__ import annotations

from typing import Any

import yaml

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import allocation

Object = dict[str, Any]

FLEET = "fleet.yaml"
SCHEMAS = "schemas"
SUMMARY = "_summary.yaml"
STATUS = "_status"
TRAILER = "Source-Commit"

COMPUTED = frozenset(
    {
        "workspaces.tenancy.kcp.io",
        "workspacetypes.tenancy.kcp.io",
        "logicalclusters.core.kcp.io",
        "namespaces",
        "customresourcedefinitions.apiextensions.k8s.io",
        "apibindings.apis.kcp.io",
        "apiexports.apis.kcp.io",
        "secrets",
        "events",
        "leases.coordination.k8s.io",
    }
)
"""Resources whose status follows from git, those without one, and Secrets, of which nothing is ever written."""

_ALIVE = frozenset({"lastHeartbeatTime", "lastSyncerHeartbeatTime", "resourceVersion"})
_MARKS = frozenset({marks.CLUSTER, marks.SOURCE_PATH, marks.SOURCE_COMMIT, marks.ORIGIN})


def directory_of(path: str, directory: str) -> str:
    """A workspace's folder on the branch: its directory in the repository, or what that would be."""
    return directory or "workspaces/" + path.replace(":", "/")


def status_path(directory: str, key: Key) -> str:
    resource = key.resource.partition(":")[0]
    return f"{directory}/{STATUS}/{key.namespace or '_'}/{resource}/{key.name}.yaml"


def schema_path(key: Key) -> str:
    return f"{SCHEMAS}/{key.cluster}/{key.name}.yaml"


def is_recorded(key: Key) -> bool:
    """Whether the status of such an object goes to the branch."""
    resource = key.resource.partition(":")[0]
    return not resource.startswith("~") and resource not in COMPUTED


def status_file(obj: Object) -> bytes | None:
    """The canonical file of an object, or None if it has no status and was given nothing."""
    status = _canonical(obj.get("status"))
    given = allocation.allocated(obj) if (obj["apiVersion"], obj["kind"]) == ("v1", "Service") else {}
    if not status and not given:
        return None
    metadata = obj["metadata"]
    out: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": metadata["name"]}}
    if metadata.get("namespace"):
        out["metadata"]["namespace"] = metadata["namespace"]
    kept = {k: v for k, v in (metadata.get("annotations") or {}).items() if _is_ours(k)}
    if kept:
        out["metadata"]["annotations"] = kept
    if given:
        out["allocated"] = given
    if status:
        out["status"] = status
    return dump(out)


def _is_ours(annotation: str) -> bool:
    """Annotations that Treeplane's controllers set: decisions. Others' are theirs to restore."""
    prefix = "." + annotation.partition("/")[0]
    return annotation not in _MARKS and prefix.endswith((".kcp.io", ".treeplane.dev"))


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _canonical(v) for k, v in value.items() if k not in _ALIVE}
    if isinstance(value, list):
        items = [_canonical(v) for v in value]
        if items and all(isinstance(i, dict) and "type" in i and "status" in i for i in items):
            return sorted(items, key=lambda i: str(i["type"]))
        return items
    return value


def dump(value: Object) -> bytes:
    out: bytes = yaml.dump(
        value, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True, encoding="utf-8", width=120
    )
    return out


def load(data: bytes) -> Object:
    found: Object = yaml.load(data, Loader=yaml.CSafeLoader)
    return found

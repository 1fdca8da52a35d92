"""Makes controller_roles.json: `kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o json |
python -m apiserver.auth.bootstrap_generate`, of a cluster on which nothing but a kube-apiserver was started.

What is in force in every workspace (bootstrap.py) is left out; what is left are the roles of Kubernetes' controllers,
which a cluster has as objects. Run by hand when Kubernetes changes; the result is committed beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from apiserver.auth.bootstrap import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES

HERE = Path(__file__).parent
_LABEL = "kubernetes.io/bootstrapping"
_KEPT = ("rules", "roleRef", "subjects")


def distilled(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kind, name, namespace and content of those that every cluster starts with, in their order."""
    bindings = {binding["metadata"]["name"] for binding in CLUSTER_ROLE_BINDINGS}
    known = {"ClusterRole": set(CLUSTER_ROLES), "ClusterRoleBinding": bindings}
    made = []
    for obj in found:
        metadata = obj["metadata"]
        if _LABEL not in (metadata.get("labels") or {}) or metadata["name"] in known.get(obj["kind"], ()):
            continue
        content = {field: obj[field] for field in _KEPT if obj.get(field)}
        namespace = {"namespace": metadata["namespace"]} if "namespace" in metadata else {}
        made.append({"kind": obj["kind"], "name": metadata["name"], **namespace, **content})
    return made


def main() -> None:
    made = distilled(json.load(sys.stdin)["items"])
    lines = ",\n".join(json.dumps(obj, separators=(",", ":")) for obj in made)
    (HERE / "controller_roles.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()

"""The plain manifests in deploy/manifests/: what the chart renders, without Helm's own marks, for whoever has no Helm.

Written and held to the chart by tests/unit/test_deployment.py.
"""

from __future__ import annotations

from typing import Any

import yaml

Object = dict[str, Any]

NAMESPACE = "treeplane"
EXAMPLE = "https://git.example.org/platform/fleet.git"
"""The repository that they name: the one line to change."""
_HEAD = f"""\
# Treeplane on a cluster, without Helm: rendered from deploy/helm/treeplane. Change the repository, then
#
#     kubectl apply -f treeplane.yaml
#
# After a change of the settings in the ConfigMap: kubectl -n {NAMESPACE} rollout restart deployment/treeplane
# Served is {EXAMPLE} (in the ConfigMap).
"""
_FIRST = ("Namespace", "ServiceAccount", "PersistentVolumeClaim", "ConfigMap", "Service", "NetworkPolicy", "Deployment")
_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}


def plain(rendered: str) -> list[Object]:
    """Of what `helm template` says, in the order in which a cluster wants it, with the Namespace."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": _RESTRICTED}}
    found = [namespace, *(each for each in yaml.safe_load_all(rendered) if each)]
    for each in found:
        for metadata in (each["metadata"], each.get("spec", {}).get("template", {}).get("metadata", {})):
            metadata.get("labels", {}).pop("app.kubernetes.io/managed-by", None)
            if "checksum/config" in metadata.get("annotations", {}):
                del metadata["annotations"]  # nobody would count it anew
    return sorted(found, key=lambda each: _FIRST.index(each["kind"]))


def text(objects: list[Object]) -> str:
    return _HEAD + "".join(f"---\n{yaml.safe_dump(each, sort_keys=False, width=120)}" for each in objects)

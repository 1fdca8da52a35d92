"""From an upstream object to what a sync target gets. Pure.

Only content goes down: labels, annotations, spec, data. Identity, ownership, status and Treeplane's own annotations
stay upstream. Nothing is rewritten beyond what a plain cluster needs.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from apiserver.model.kinds import GroupResource
from reconciler.syncing.inventory import PART_OF

Object = dict[str, Any]

CLUSTER_LABEL = "internal.workload.kcp.io/cluster"
"""On everything of ours on a target: the key of the sync target."""
OF = "treeplane.dev/of"
"""Annotation on a Job's copy: the uid of the Job upstream."""
_BATCH, _OF_A_JOB = "batch.kubernetes.io/", ("controller-uid", "job-name")
_OURS = ("treeplane.dev/", "kcp.io/", "scheduling.kcp.io/", "workload.kcp.io/")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_TOKEN_TYPE = "kubernetes.io/service-account-token"


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a rendering goes. `key`: the sync target's; `namespace`: on the target; `part_of`: id of its ApplySet."""

    key: str
    namespace: str
    part_of: str


def render(kind: GroupResource, upstream: Object, to: Destination, *, scaled: bool = False) -> Object:
    """The object to apply; `upstream` is not changed. `scaled`: an autoscaler on the target sets its replicas."""
    metadata = upstream["metadata"]
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if not _internal(k)}
    labels[CLUSTER_LABEL] = to.key
    labels[PART_OF] = to.part_of
    annotations = {
        k: v for k, v in (metadata.get("annotations") or {}).items() if not _internal(k) and k != _LAST_APPLIED
    }
    rendered: Object = {
        "apiVersion": upstream["apiVersion"],
        "kind": upstream["kind"],
        "metadata": {"name": metadata["name"], "namespace": to.namespace, "labels": labels},
    }
    if annotations:
        rendered["metadata"]["annotations"] = annotations
    for field, value in upstream.items():
        if field not in ("apiVersion", "kind", "metadata", "status") and value is not None:
            rendered[field] = value
    if scaled and "replicas" in (rendered.get("spec") or {}):
        rendered["spec"] = {k: v for k, v in rendered["spec"].items() if k != "replicas"}
    match kind:
        case ("", "services"):
            rendered["spec"] = _service(rendered.get("spec") or {})
        case ("", "secrets") if rendered.get("type") == _TOKEN_TYPE:
            # The target's token controller would delete a token whose ServiceAccount it does not know.
            rendered["type"] = "Opaque"
        case ("batch", "jobs"):
            rendered["spec"] = _job(rendered.get("spec") or {})
            # Which run it is: a Job of the same name that was made anew upstream is another one.
            rendered["metadata"].setdefault("annotations", {})[OF] = metadata["uid"]
        case ("", "serviceaccounts"):
            # Names of token Secrets are each cluster's own.
            rendered.pop("secrets", None)
    return rendered


def _internal(name: str) -> bool:
    prefix, slash, _ = name.rpartition("/")
    return bool(slash) and any(f"{prefix}/" == p or prefix.endswith("." + p[:-1]) for p in _OURS)


def _job(spec: Object) -> Object:
    """Without its time to live, since the copy goes only when its end is on record (jobs.py), and without what selects
    its Pods by the uid that it has upstream: each cluster makes its own."""
    out = {k: v for k, v in spec.items() if k != "ttlSecondsAfterFinished"}
    if spec.get("manualSelector") or "selector" not in spec:
        return out
    del out["selector"]
    template = out.get("template") or {}
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k.removeprefix(_BATCH) not in _OF_A_JOB}
    return {**out, "template": {**template, "metadata": {**metadata, "labels": labels}}}


def _service(spec: Object) -> Object:
    """Without addresses, which each cluster allocates; `None` (headless) is a wish, not an address."""
    out = {k: v for k, v in spec.items() if k not in ("clusterIPs", "healthCheckNodePort")}
    if out.get("clusterIP") not in (None, "None"):
        del out["clusterIP"]
    return out


def encode(rendered: Object) -> tuple[bytes, bytes]:
    """The body of an apply request, and a digest of it that is the same for equal content."""
    body = orjson.dumps(rendered, option=orjson.OPT_SORT_KEYS)
    return body, hashlib.blake2b(body, digest_size=16).digest()

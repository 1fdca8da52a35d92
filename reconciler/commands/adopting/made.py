"""The manifests of ours that a workspace made of somebody's files gets.

Called by planning.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

import yaml

from reconciler.plan.system import COMPUTE


def bindings(exports: list[str]) -> bytes:
    """To exports that ship; empty for none."""
    return _documents(
        {
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIBinding",
            "metadata": {"name": export},
            "spec": {"reference": {"export": {"path": COMPUTE, "name": export}}},
        }
        for export in exports
    )


def namespaces(names: list[str]) -> bytes:
    return _documents({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names)


def wrapper(place: str, directory: str) -> bytes:
    """A kustomization at `place` of nothing but another one, that of `directory`."""
    return _documents(
        [
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": [posixpath.relpath(directory, place)],
            }
        ]
    )


def _documents(objects: Iterable[dict[str, object]]) -> bytes:
    texts = [yaml.safe_dump(each, sort_keys=False, allow_unicode=True, width=1000) for each in objects]
    return "---\n".join(texts).encode()

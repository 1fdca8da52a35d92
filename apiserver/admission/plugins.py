"""The names of the admission plugins that a server may do without, as a kube-apiserver may.

Apart from completion.py, which has the plugins: options name them, and who reads options does not load every kind.
"""

from __future__ import annotations

PLUGINS = frozenset({
    "DefaultIngressClass", "DefaultStorageClass", "DefaultTolerationSeconds", "PersistentVolumeClaimResize", "Priority",
    "RuntimeClass", "ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition", "PodTopologyLabels",
})  # fmt: skip

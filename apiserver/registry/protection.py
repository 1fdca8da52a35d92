"""The finalizers by which objects of storage stay while they are used: set when one is made through the API
(admission/completion.py), taken away by a controller when nothing uses it any more."""

from __future__ import annotations

FINALIZERS = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
    "volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}
"""By store name."""

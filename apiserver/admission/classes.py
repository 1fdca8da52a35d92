"""The class of a claim or an Ingress that names none: the cluster's default; and which claims may grow."""

from __future__ import annotations

from typing import Any

from apiserver.admission.place import Place, spec_of
from apiserver.model.errors import forbidden
from apiserver.registry import quantities

Object = dict[str, Any]

STORAGE_CLASSES = "storageclasses.storage.k8s.io"
INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
_DEFAULT_STORAGE = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_DEFAULT_INGRESS = ("ingressclass.kubernetes.io/is-default-class",)
_OLD_CLAIM, _OLD_INGRESS = "volume.beta.kubernetes.io/storage-class", "kubernetes.io/ingress.class"
_MARK = b'is-default-class":"true"'
_GROWS = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
)


def complete_claim(place: Place, claim: Object) -> None:
    spec = spec_of(claim)
    if spec.get("storageClassName") is None and _OLD_CLAIM not in _annotations(claim):
        _set_default(place, spec, "storageClassName", STORAGE_CLASSES, _DEFAULT_STORAGE)


def complete_ingress(place: Place, ingress: Object) -> None:
    spec = spec_of(ingress)
    if spec.get("ingressClassName") is None and _OLD_INGRESS not in _annotations(ingress):
        _set_default(place, spec, "ingressClassName", INGRESS_CLASSES, _DEFAULT_INGRESS)


def _set_default(place: Place, spec: Object, field: str, resource: str, marks: tuple[str, ...]) -> None:
    """Of several default classes the newest counts, of those the first by name."""
    found = [c for c in place.marked(resource, _MARK) if any(_annotations(c).get(m) == "true" for m in marks)]
    found.sort(key=lambda c: str(c["metadata"]["name"]))
    found.sort(key=lambda c: str(c["metadata"].get("creationTimestamp") or ""), reverse=True)
    if found:
        spec[field] = found[0]["metadata"]["name"]


def vet_claim(place: Place, new: Object, live: Object | None) -> None:
    """Raises StatusError 403 for a claim that grows and may not."""
    if live is None or _size(new) <= _size(live):
        return
    name = new["metadata"]["name"]
    if (live.get("status") or {}).get("phase") != "Bound":
        raise forbidden("persistentvolumeclaims", "", name, "Only bound persistent volume claims can be expanded")
    before, after = _class(live), _class(new)
    found = place.get(STORAGE_CLASSES, after) if after and before == after else None
    if found is None or found.get("allowVolumeExpansion") is not True:
        raise forbidden("persistentvolumeclaims", "", name, _GROWS)


def _class(claim: Object) -> str:
    return str(_annotations(claim).get(_OLD_CLAIM) or claim["spec"].get("storageClassName") or "")


def _size(claim: Object) -> Any:
    return quantities.parse(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or 0)


def _annotations(obj: Object) -> Object:
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}

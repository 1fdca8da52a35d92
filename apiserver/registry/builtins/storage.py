"""storage.k8s.io."""

from __future__ import annotations

from apiserver.registry.behaviours import storage as rules_storage
from apiserver.registry.builtins.entry import BuiltinKind
from apiserver.registry.printers import capacity as shown_capacity

KINDS = (
    BuiltinKind(
        "CSIDriver",
        "csidrivers.storage.k8s.io",
        behaviour=rules_storage.CSI_DRIVER,
        printer=shown_capacity.CSI_DRIVER,
        put_revised=True,
        answers_deleted=True,
    ),
    BuiltinKind(
        "CSINode",
        "csinodes.storage.k8s.io",
        behaviour=rules_storage.CSI_NODE,
        printer=shown_capacity.CSI_NODE,
        put_revised=True,
        answers_deleted=True,
    ),
    BuiltinKind(
        "CSIStorageCapacity",
        "csistoragecapacities.storage.k8s.io",
        behaviour=rules_storage.CSI_STORAGE_CAPACITY,
        printer=shown_capacity.CSI_STORAGE_CAPACITY,
        put_revised=True,
    ),
    BuiltinKind(
        "StorageClass",
        "storageclasses.storage.k8s.io",
        behaviour=rules_storage.STORAGE_CLASS,
        printer=shown_capacity.STORAGE_CLASS,
        answers_deleted=True,
    ),
    BuiltinKind(
        "VolumeAttachment",
        "volumeattachments.storage.k8s.io",
        behaviour=rules_storage.VOLUME_ATTACHMENT,
        printer=shown_capacity.VOLUME_ATTACHMENT,
        put_revised=True,
        status_takes=(),
        answers_deleted=True,
    ),
    BuiltinKind(
        "VolumeAttributesClass",
        "volumeattributesclasses.storage.k8s.io",
        behaviour=rules_storage.VOLUME_ATTRIBUTES_CLASS,
        printer=shown_capacity.VOLUME_ATTRIBUTES_CLASS,
        plugins=("StorageObjectInUseProtection",),
        finalizer="kubernetes.io/vac-protection",
        answers_deleted=True,
    ),
)

"""What `kubectl explain` says of the fields that every object has. Our own kinds' texts stand in facts/treeplane/."""

from __future__ import annotations

from typing import Any

from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.served import ServedKind

EVERY_OBJECT = {
    "apiVersion": "APIVersion defines group and version of the schema in which the object is written.",
    "kind": "Kind names the type of the object.",
    "metadata": "Standard object's metadata: name, labels, annotations and what the server keeps about the object.",
    "spec": "What the object should be.",
    "status": "What is observed of the object. Filled in by the system.",
}

EVERY_LIST = {
    "apiVersion": EVERY_OBJECT["apiVersion"],
    "kind": EVERY_OBJECT["kind"],
    "metadata": "Standard list metadata: the revision that was read, and where the next page begins.",
    "items": "The objects.",
}

OBJECT_META = {
    "annotations": "Annotations hold what tools and people note about the object. They cannot be selected by.",
    "creationTimestamp": "CreationTimestamp is a timestamp that says when the object was made. Set by the server.",
    "deletionGracePeriodSeconds": "How long the object may take to go away after it was deleted. Set by the server.",
    "deletionTimestamp": "When deletion was asked for; the object goes after its finalizers. Set by the server.",
    "finalizers": "Names of the programs that have to act before the object is removed.",
    "generateName": "A prefix from which the server makes a name where none is given.",
    "generation": "Counts the changes of what the object should be. Set by the server.",
    "labels": "Labels say what the object belongs to; selectors choose objects by them.",
    "managedFields": "Which program set which field. Kept by the server.",
    "name": "The name, unique among objects of the kind in a namespace, or in the workspace if there is none.",
    "namespace": "The namespace; absent for objects that belong to the whole workspace.",
    "ownerReferences": "Objects that this one depends on: it is removed when all of them are gone.",
    "resourceVersion": "The revision that last wrote the object. Writes that name an older one are refused.",
    "selfLink": "Not used.",
    "uid": "Tells the object from all others that ever had its name. Set by the server.",
}


def with_conditions(kind: ServedKind, properties: dict[str, Any]) -> dict[str, Any]:
    """The properties of one of our own kinds, whose conditions say which there are."""
    entry = ENTRIES.get(kind.storage) if kind.builtin else None  # which an older name of its group has, too
    told = entry.conditions if entry is not None else ()
    if not told:
        return properties
    status = properties["status"]
    found = status["properties"]["conditions"]
    listed = " ".join(f"{each.type}: {each.says}" for each in told)
    said = {**found, "description": f"{found['description']} {listed}"}
    return {**properties, "status": {**status, "properties": {**status["properties"], "conditions": said}}}

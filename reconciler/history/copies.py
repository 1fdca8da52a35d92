"""Objects as they stand on a cluster: which of ours they are copies of, and whether they say what is declared.

Called by trace. What a copy says of itself is the cluster's word: names are only looked for, and nothing follows from
them but what git and the status branch say as well.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from apiserver.model.kinds import GroupResource
from apiserver.model.origins import file_of
from reconciler.history.kinds import DeclaredId, resource_of, schema_of
from reconciler.history.leaves import Leaves
from reconciler.history.result import CopyDifference
from reconciler.layout.manifest import Manifest
from reconciler.review.fields import ABSENT, HIDDEN, is_hidden
from reconciler.syncing.compare import means
from reconciler.syncing.inventory import PARENT_NAME, PART_OF, Inventory, applyset_id
from reconciler.syncing.inventory import read as inventory_of
from reconciler.syncing.render import CLUSTER_LABEL, OF, Destination, render

Object = dict[str, Any]


class GivenCopy(NamedTuple):
    """An object from a cluster. `target`: key of the sync target, "" of what stands on none of ours; `file`: that
    declares it, of an object as our own API shows it; `inventory`: what stands beside it, where that was given, too."""

    value: Object
    kind: str
    group: str
    namespace: str
    name: str
    target: str
    file: str
    inventory: Inventory | None = None

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


def given(objects: Iterable[Object]) -> Iterator[GivenCopy]:
    """The copies among them: inventories explain the others, and are none."""
    every = [*filter(None, map(_shaped, objects))]
    parents = {str(each["metadata"].get("namespace", "")): inventory_of(each) for each in every if _is_parent(each)}
    for each in every:
        if _is_parent(each):
            continue
        metadata = each["metadata"]
        labels, namespace = metadata["labels"], str(metadata.get("namespace") or "")
        ours = labels.get(PART_OF) == applyset_id(namespace)
        group = str(each.get("apiVersion", "")).rpartition("/")[0]
        key = str(labels.get(CLUSTER_LABEL, "")) if ours else ""
        name, kind = str(metadata["name"]), str(each.get("kind", ""))
        yield GivenCopy(each, kind, group, namespace, name, key, file_of(each), parents.get(namespace))


def _shaped(value: Object) -> Object | None:
    """An object with maps where maps belong, whatever was given; None for what has no name."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return None
    maps = {part: said if isinstance(said := metadata.get(part), dict) else {} for part in ("labels", "annotations")}
    owners = metadata.get("managedFields")
    lists = {"managedFields": owners if isinstance(owners, list) else []}
    found: Object = {**value, "metadata": {**metadata, **maps, **lists}}
    if not isinstance(found.get("data"), dict):
        found.pop("data", None)
    return found


def _is_parent(value: Object) -> bool:
    metadata = value["metadata"]
    return metadata["name"] == PARENT_NAME and "namespace" in metadata and inventory_of(value) is not None


def differences(manifest: Manifest, copy: GivenCopy) -> list[CopyDifference] | None:
    """The fields that a file declares and a copy does not say; what a cluster adds is no difference. None where they
    are of different versions, which cannot be compared so."""
    if manifest.value.get("apiVersion") != copy.value.get("apiVersion"):
        return None
    rendered = _rendered(manifest, copy) if copy.target else manifest.value
    leaves = Leaves(schema_of(manifest.gvk))
    wanted, there = leaves.of(rendered), leaves.of(copy.value)
    resource = resource_of(manifest.gvk)
    out = []
    for name, leaf in wanted.items():
        found = there[name].value if name in there else None
        if means(leaf.value, found):
            continue
        said = ABSENT if name not in there else found
        hidden = is_hidden(resource, name)
        out.append(CopyDifference(name, HIDDEN if hidden else leaf.value, HIDDEN if hidden and name in there else said))
    return out


def _rendered(manifest: Manifest, copy: GivenCopy) -> Object:
    resource, _, group = (resource_of(manifest.gvk) or f"{manifest.gvk.kind.lower()}s.{manifest.gvk.group}").partition(
        "."
    )
    metadata = copy.value["metadata"]
    uid = (metadata.get("annotations") or {}).get(OF, "")
    upstream = {**manifest.value, "metadata": {**manifest.value["metadata"], "uid": uid}}
    if resource == "secrets" and not group and isinstance(upstream.get("stringData"), dict):
        said = {k: base64.b64encode(str(v).encode()).decode() for k, v in upstream.pop("stringData").items()}
        upstream["data"] = {**(upstream.get("data") or {}), **said}
    to = Destination(copy.target, copy.namespace, applyset_id(copy.namespace))
    return render(GroupResource(group, resource), upstream, to, scaled=_is_scaled(copy))


def _is_scaled(copy: GivenCopy) -> bool:
    """Whether somebody on the target sets the replicas."""
    owners = copy.value["metadata"].get("managedFields") or ()
    return any(isinstance(each, dict) and each.get("subresource") == "scale" for each in owners)


def identity(copy: GivenCopy, namespace: str) -> DeclaredId:
    """Of the object that it is a copy of, in its namespace upstream."""
    return DeclaredId(copy.group, copy.kind, namespace if namespace != "default" else "", copy.name)

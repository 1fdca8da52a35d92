"""What of an object is its own, where a whole fleet has objects that say the same besides.

Called by effects for what a workspace has without declaring it, and for its Workspace object: the store keeps of those
what is their own (storage/templates).
"""

from __future__ import annotations

from typing import Any

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.storage.templates import Filled, Kind, Parameter, cut

Object = dict[str, Any]

_ANNOTATIONS = (
    (marks.SOURCE_COMMIT, Kind.COMMIT),
    (marks.SOURCE_PATH, Kind.TEXT),
    (marks.PATH, Kind.TEXT),
)


def like_others(key: Key, obj: Object, value: bytes) -> Filled | None:
    """`value`, which is `obj` as it is stored, in the form that the store keeps; None where it has none."""
    return cut(key, value, _own(obj))


def _own(obj: Object) -> list[Parameter]:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    found = [(Kind.UID, metadata["uid"]), (Kind.TIME, metadata["creationTimestamp"])]
    annotations = metadata.get("annotations") or {}
    found += [(kind, annotations[name]) for name, kind in _ANNOTATIONS if name in annotations]
    owner = spec.get("owner")
    told = (spec.get("cluster"), *((owner.get("name"), owner.get("cluster")) if isinstance(owner, dict) else ()))
    found += [(Kind.TEXT, each) for each in told if isinstance(each, str)]
    if isinstance(owner, dict) and "uid" in owner:
        found.append((Kind.UID, owner["uid"]))
    return found

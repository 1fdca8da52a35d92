"""Labels and annotations that the system sets, on whatever object: nobody else is to claim what they say.

Called for writes through the API (auth/reserving) and for manifests (loading/render, layout/workspace). What Treeplane
itself marks objects with (marks) is put back where a client says otherwise, and is not listed here. Labels of claimed
objects are computed when they are read, so that who sends them back says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from apiserver.model import marks

Object = dict[str, Any]

OF_WORKSPACES = frozenset({marks.REQUIRED_GROUPS, marks.INACTIVE, marks.MOST_OBJECTS})
"""Annotations of a LogicalCluster that are for who owns the workspace above to say: in git its workspace.yaml does."""
SETTABLE = (marks.REQUIRED_GROUPS, marks.INACTIVE, marks.MOST_OBJECTS)
"""Of these, what who administers everything may say of a LogicalCluster through the API, where its workspace.yaml says
nothing of it."""
ANNOTATIONS = OF_WORKSPACES | {*marks.PLACES, marks.PATH, marks.TYPE, marks.OWNER}
LABELS = frozenset({"tenancy.kcp.io/phase", "internal.apis.kcp.io/export"})
_LABEL_DOMAINS = ("initializer.internal.kcp.io/", "terminator.internal.kcp.io/")


_NUMBER = re.compile("0|[1-9][0-9]{0,17}", re.ASCII)


class ReservedMark(NamedTuple):
    """A label or an annotation (`sort`)."""

    sort: str
    key: str

    @property
    def field(self) -> str:
        return f"metadata.{self.sort}s[{self.key}]"

    @property
    def changed(self) -> str:
        """What is told to whoever sends it, in kcp's words."""
        return f'modification of reserved {self.sort}: "{self.key}"'

    @property
    def said(self) -> str:
        """What is told of a file."""
        return f"{self.key} is a reserved {self.sort}"


def changes(new: Object, old: Object) -> Iterator[ReservedMark]:
    """Those in which the metadata of two objects differ."""
    for sort, is_reserved in _SORTS:
        after, before = new.get(f"{sort}s") or {}, old.get(f"{sort}s") or {}
        if after != before:
            differing = (key for key in {**before, **after} if after.get(key) != before.get(key))
            yield from (ReservedMark(sort, key) for key in differing if is_reserved(key))


def said(metadata: Object) -> Iterator[ReservedMark]:
    """All that metadata say."""
    return changes(metadata, {})


def settable(metadata: Object) -> dict[str, str]:
    """What a Workspace says for its LogicalCluster, or a LogicalCluster of itself, of those."""
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    return {key: annotations[key] for key in SETTABLE if key in annotations}


def wrong(annotations: Mapping[str, str]) -> str:
    """What is wrong with the values of those, "" if nothing."""
    inactive, most = annotations.get(marks.INACTIVE, "true"), annotations.get(marks.MOST_OBJECTS, "0")
    if inactive not in ("true", "false"):
        return f"{marks.INACTIVE} is {inactive!r}: it is true or false"
    return "" if _NUMBER.fullmatch(most) else f"{marks.MOST_OBJECTS} is {most!r}: it is a number of objects, 0 for any"


def is_inactive(annotations: Mapping[str, str]) -> bool:
    return annotations.get(marks.INACTIVE) == "true"


def _is_label(key: str) -> bool:
    return key in LABELS or key.startswith(_LABEL_DOMAINS)


_SORTS = (("annotation", ANNOTATIONS.__contains__), ("label", _is_label))

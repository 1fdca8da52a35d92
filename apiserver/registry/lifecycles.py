"""Initializers and terminators: programs that act on a workspace before it is Ready, and before it goes.

A WorkspaceType with `initializer` or `terminator` has one of each name, which its workspaces get when they appear; each
takes its own name away when it is done. The status of a workspace's LogicalCluster, and of its Workspace, says whose
turn is still to come; phase, labels and a condition follow from that. Used by loading, which writes both objects, and
by the views through which the programs work (endpoints/lifecycleviews).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.model import conditions
from apiserver.model.conditions import condition

Object = dict[str, Any]

PHASE = "tenancy.kcp.io/phase"
"""Label of both objects: status.phase."""
INITIALIZED = "WorkspaceInitialized"
"""The condition that says whether all initializers are done."""
DONE = "Initialized"
"""Its reason where the last of them said so, at the time at which that was."""
_LABEL_LENGTH = 63


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """`word`: what such a program is called; `verb`: on its WorkspaceType, of whoever may act as it; `phase`: that of
    workspaces which wait for one."""

    word: str
    verb: str
    view: str
    phase: str

    @property
    def field(self) -> str:
        """Of a LogicalCluster's spec and status and a Workspace's status."""
        return f"{self.word}s"

    @property
    def permissions(self) -> str:
        """Of a WorkspaceType's spec: what the program may do in a workspace, without them what its owner may."""
        return f"{self.word}Permissions"

    def label(self, name: str) -> tuple[str, str]:
        """The label of who waits for the program of this name. The key holds as much of the hash as fits."""
        prefix, digest = f"{self.word}.internal.kcp.io/", hashlib.sha224(name.encode()).hexdigest()
        return prefix + digest[: _LABEL_LENGTH - len(prefix)], digest

    def left(self, obj: Object) -> list[str]:
        """Whose turn is still to come, by the status of either object."""
        return list((obj.get("status") or {}).get(self.field) or ())

    def awaits(self, obj: Object, name: str) -> bool:
        """Whether a workspace waits for this one now."""
        return (obj.get("status") or {}).get("phase") == self.phase and name in self.left(obj)


INITIALIZER = Lifecycle("initializer", "initialize", "initializingworkspaces", "Initializing")
TERMINATOR = Lifecycle("terminator", "terminate", "terminatingworkspaces", "Terminating")
LIFECYCLES = (INITIALIZER, TERMINATOR)


def name_of(cluster: str, type_name: str) -> str:
    """What the program of a WorkspaceType is called. `cluster`: the logical cluster that has the type."""
    return f"{cluster}:{type_name}"


def type_of(name: str) -> tuple[str, str]:
    """The logical cluster and the name of the type that has a program; ("", …) for no such name."""
    cluster, _, found = name.rpartition(":")
    return cluster, found


def not_initialized(names: Iterable[str], at: str) -> conditions.Condition:
    """While there are initializers. `at`: since when (RFC 3339)."""
    return condition(INITIALIZED, False, "InitializerExists", f"waiting for {', '.join(names)}", at=at)


def with_labels(labels: Mapping[str, str], status: Object) -> Object:
    """An object's labels with those that follow from its status, and no others of the kind."""
    prefixes = tuple(f"{each.word}.internal.kcp.io/" for each in LIFECYCLES)
    kept = {k: v for k, v in labels.items() if k != PHASE and not k.startswith(prefixes)}
    told = dict(each.label(name) for each in LIFECYCLES for name in each.left({"status": status}))
    return kept | told | ({PHASE: status["phase"]} if status.get("phase") else {})


def with_status(obj: Object, status: Object) -> Object:
    """Either object of a workspace with this status, and the labels that follow from it."""
    labels = with_labels(obj["metadata"].get("labels") or {}, status)
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}, "status": status}


def without(obj: Object, lifecycle: Lifecycle, name: str, at: str) -> Object:
    """Either object of a workspace when a program is done. `at`: now (RFC 3339). A workspace that waits for no
    initializer any more is Ready; what follows the last terminator is for who takes it away to say."""
    status = {**obj["status"], lifecycle.field: [each for each in lifecycle.left(obj) if each != name]}
    if lifecycle is INITIALIZER and status.get("phase") == INITIALIZER.phase:
        left = status[lifecycle.field]
        told = not_initialized(left, at) if left else condition(INITIALIZED, True, DONE, at=at)
        status["phase"] = INITIALIZER.phase if left else "Ready"
        status["conditions"] = conditions.merged(status.get("conditions"), [told])
    return with_status(obj, status)

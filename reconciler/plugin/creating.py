"""`kubectl ws create` and `kubectl create workspace`: a workspace below the current one, and until it can be used.

What becomes of it is the server's: a runtime object, a commit, or a refusal that says which file to commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reconciler.plugin.client import Object
from reconciler.plugin.errors import NOT_READY, USAGE, PluginError
from reconciler.plugin.selecting import label_selector
from reconciler.plugin.session import WORKSPACES, Session, from_root
from reconciler.plugin.waiting import in_phase, missing, phase_of

_CONFLICT, _FORBIDDEN = 409, 403
_FILE = "/workspace.yaml"
"""What such a refusal names."""


class FilesWanted(PluginError):
    """The server refuses it, since workspaces here are directories that somebody commits."""


class WantedWorkspace(NamedTuple):
    """`type`: as it was typed, a name or a path with one; "": what the parent's type says. `seconds`: how long it may
    take to be ready. `location`: a label selector of Shards; "": any will do."""

    name: str
    type: str = ""
    ignore_existing: bool = False
    seconds: float = 60.0
    location: str = ""

    def manifest(self) -> Object:
        """Raises PluginError."""
        spec = {"type": self._reference()} if self.type else {}
        if self.location:
            spec["location"] = {"selector": label_selector(self.location)}
        return {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "Workspace",
            "metadata": {"name": self.name},
            "spec": spec,
        }

    def _reference(self) -> Object:
        path, _, name = self.type.rpartition(":")
        return {"name": name.lower(), **({"path": path} if path else {})}

    def check(self) -> None:
        """Raises PluginError."""
        if self.ignore_existing and self.type and not from_root(self.type):
            raise PluginError("--ignore-existing must not be used with non-absolute type path", USAGE)

    def check_existing(self, obj: Object) -> None:
        """Raises PluginError where the one that is there is of another type."""
        if self.type and (wanted := _type({"spec": {"type": self._reference()}})) != (there := _type(obj)):
            raise PluginError(
                f'workspace "{self.name}" cannot be created with type {wanted}, it already exists with different type '
                f"{there}"
            )


def create(session: Session, wanted: WantedWorkspace, say: Callable[[str], None]) -> Object:
    """The Workspace, once it is ready. Raises PluginError."""
    wanted.check()
    answer = session.client.send("POST", session.within(WORKSPACES), wanted.manifest())
    existed = answer.status == _CONFLICT and answer.object.get("reason") == "AlreadyExists" and wanted.ignore_existing
    if existed:
        answer = session.client.get(session.within(f"{WORKSPACES}/{wanted.name}"))
    if answer.status == _FORBIDDEN and _FILE in str(answer.object.get("message")):
        raise FilesWanted(str(answer.refusal()))
    if answer.status not in (200, 201):
        raise answer.refusal()
    if existed:
        wanted.check_existing(answer.object)
    told = f'Workspace "{wanted.name}" (type {_type(answer.object)})'
    done = "already exists" if existed else "created"
    if phase_of(answer.object) != "Ready":
        say(f"{told} {done}. Waiting for it to be ready...")
    elif existed:
        say(f"{told} {done}.")
    ready = _ready(session, wanted, answer.object)
    say(f"{told} is ready to use.")
    return ready


def _ready(session: Session, wanted: WantedWorkspace, seen: Object) -> Object:
    seen, ready = in_phase("Ready", session, f"{WORKSPACES}/{wanted.name}", seen, wanted.seconds)
    if not ready:
        raise PluginError(
            f'workspace "{wanted.name}" is not ready after {wanted.seconds:g} s, it is {phase_of(seen) or "new"}; see '
            f"kubectl get ws {wanted.name} -o yaml{missing(seen)}",
            NOT_READY,
        )
    return seen


def _type(obj: Object) -> str:
    found = (obj.get("spec") or {}).get("type") or {}
    return ":".join(filter(None, (found.get("path"), found.get("name"))))

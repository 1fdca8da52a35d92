"""`treeplane grant`: what a user or group may do in a workspace, as RBAC in files of that workspace.

Called by the command line. Who is granted a role gets the verb `access` there too, without which no role is worth
anything; nothing above or below is touched. One file has all that is granted to one subject, under a name that says
whom; objects that somebody moved into another file are found there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from apiserver.auth.bootstrap import API_VERSION, CLUSTER_ROLES, RBAC_GROUP
from reconciler.commands.failure import Failure
from reconciler.commands.filing.desk import Desk
from reconciler.commands.usernames import require_name
from reconciler.layout import edit
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.place import file_name
from reconciler.layout.workspace import declaration
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.plugin.meant import question

Object = dict[str, Any]

FOLDER = "_access"
"""Below a workspace's directory. No workspace can be called so."""
ACCESS = "system:kcp:workspace:access"
"""The ClusterRole, in force in every workspace, that is the verb `access` on `/` alone."""
_RENDERED = ("kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml")
_PREFIX = "treeplane:grant"
_ODD = re.compile(r"[^a-zA-Z0-9._@+-]")
_LONGEST = 100


class GrantAsked(NamedTuple):
    """`kind`: User or Group. `namespace`: "" for all of the workspace. `remove`: it is taken back."""

    kind: str
    subject: str
    role: str
    path: str
    namespace: str = ""
    remove: bool = False
    admin: bool = False


def grant(desk: Desk, asked: GrantAsked) -> list[str]:
    """Puts it on the desk; the commit's message. Raises Failure."""
    require_name(asked.subject, asked.kind.lower(), admin=asked.admin)
    place = desk.workspace(asked.path)
    _require_own(desk, place)
    grants = _Grants(desk, place, asked)
    if asked.remove:
        grants.take_back()
        return [f"Take {asked.role} in {asked.path} back from {asked.kind.lower()} {asked.subject}"]
    grants.give()
    return [f"Grant {asked.role} in {asked.path} to {asked.kind.lower()} {asked.subject}"]


def _require_own(desk: Desk, place: WorkspaceDir) -> None:
    """That what is written into the directory would be served. Raises Failure."""
    data = desk.read(place.manifest_path) if place.manifest is not None else None
    said = declaration(data, place.manifest_path) if data is not None else None
    why = ""
    if any(desk.read(f"{place.directory}/{name}") is not None for name in _RENDERED):
        why = "its directory is rendered by kustomize or helm: add the binding to what they make"
    elif said is not None and said.source is not None:
        why = "its content comes from another repository: grant it there"
    elif said is not None and said.pin is not None:
        why = f"it is pinned, so nothing new in its directory is served: treeplane resume {place.path}"
    elif said is not None and "mount" in (said.manifest.value.get("spec") or {}):
        why = "it is a mount, and has no objects"
    if why:
        raise Failure(f"nothing can be granted in files of {place.path}", why)


class _Grants:
    """Of one subject in one workspace."""

    def __init__(self, desk: Desk, place: WorkspaceDir, asked: GrantAsked) -> None:
        self._desk, self._asked = desk, asked
        self._file = f"{place.directory}/{FOLDER}/{asked.kind.lower()}-{file_name(asked.subject)}.yaml"
        self._own = f"{_PREFIX}:{asked.kind.lower()}:{safe(asked.subject)}"
        self._there = [*_objects(desk, place)]

    def give(self) -> None:
        kind = self._role()
        asked = self._asked
        self._put(self._binding(f"{self._own}:access", "ClusterRole", ACCESS, ""))
        self._put(self._binding(self._name(kind), kind, asked.role, asked.namespace))

    def take_back(self) -> None:
        """The binding, and `access` with the last one."""
        asked = self._asked
        gone = {self._name("Role"), self._name("ClusterRole")}
        mine = [m for m in self._there if m.gvk.group == RBAC_GROUP and m.gvk.kind.endswith("RoleBinding")]
        mine = [m for m in mine if m.name.startswith(f"{self._own}:")]
        drop = [m for m in mine if m.name in gone and (m.namespace or "") == asked.namespace]
        if not drop:
            self._desk.write(self._file, self._desk.read(self._file))
            return
        if all(m in drop or m.name == f"{self._own}:access" for m in mine):
            drop = mine
        for manifest in sorted(drop, key=lambda m: -m.index):  # the last of a file first: numbers of others stay
            data = self._desk.read(manifest.path) or b""
            self._desk.write(manifest.path, edit.remove(data, manifest.path, manifest.index))

    def _name(self, kind: str) -> str:
        return f"{self._own}:{kind.lower()}:{safe(self._asked.role)}"

    def _put(self, value: Object) -> None:
        metadata = value["metadata"]
        for each in self._there:
            if (each.gvk.kind, each.name, each.namespace or "") == (
                value["kind"], metadata["name"], metadata.get("namespace", "")
            ):  # fmt: skip
                data = self._desk.read(each.path) or b""
                self._desk.write(each.path, edit.replace(data, each.path, each.index, value))
                return
        self._desk.write(self._file, edit.add(self._desk.read(self._file), self._file, value))

    def _binding(self, name: str, kind: str, role: str, namespace: str) -> Object:
        asked = self._asked
        return {
            "apiVersion": API_VERSION,
            "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
            "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": role},
            "subjects": [{"apiGroup": RBAC_GROUP, "kind": asked.kind, "name": asked.subject}],
        }

    def _role(self) -> str:
        """Role or ClusterRole. Raises Failure where there is neither, or no such namespace."""
        asked = self._asked
        spaces = {"default", *(m.name for m in self._there if m.gvk.kind == "Namespace")}
        if asked.namespace and asked.namespace not in spaces:
            raise Failure(f"{asked.path} has no namespace {asked.namespace}", _meant(asked.namespace, spaces), 2)
        roles = {m.name for m in self._there if m.gvk.kind == "Role" and (m.namespace or "default") == asked.namespace}
        if asked.role in roles:
            return "Role"
        every = {*CLUSTER_ROLES, *(m.name for m in self._there if m.gvk.kind == "ClusterRole")}
        if asked.role in every:
            return "ClusterRole"
        text = f"{asked.path} has no role {asked.role!r}"
        raise Failure(text, _meant(asked.role, {*every, *roles}), 2)


def safe(text: str) -> str:
    """Text as part of an object's name, of which no two share one."""
    found = _ODD.sub(lambda odd: "".join(f"={byte:02x}" for byte in odd[0].encode()), text)
    if len(found) <= _LONGEST:
        return found
    return f"{found[:_LONGEST]}={hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def _objects(desk: Desk, place: WorkspaceDir) -> Iterator[Manifest]:
    """Roles, bindings and namespaces of a workspace, as its files declare them."""
    for path, entry in desk.tree.files(place):
        data = desk.read(path) if entry.kind == "blob" else None
        if data is not None and (b"ole" in data or b"Namespace" in data):
            yield from (m for m in read(data, path).objects if m.gvk.group in (RBAC_GROUP, ""))


def _meant(word: str, there: set[str]) -> str:
    shown = sorted(each for each in there if not each.startswith("system:"))
    return question(word, sorted(there)) or f"there are {', '.join(shown[:20])}"

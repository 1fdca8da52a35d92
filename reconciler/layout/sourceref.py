"""What a workspace.yaml says under spec.source: the repository that the workspace's own content comes from.

Read by layout/workspace. What a branch of it holds, and whether that can be served, is loading/sourced's to say;
whether its address may be asked, whoever fetches from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from reconciler.repository.sourcerefs import SourceRefused, address

Object = dict[str, Any]

PINNED = "pinned"
"""Beside a source, as a record keeps what is followed: the commit that spec.serve names."""
NAMESPACE = "default"
"""Of the Secret, where none is named."""
_PARTS = re.compile(r"[^\x00-\x1f\x7f]+")


class SourceRef(NamedTuple):
    """`path`: of the directory, "" for all of the repository. `secret`: `<namespace>/<name>` of a Secret in the parent,
    "" for none."""

    repository: str
    branch: str
    path: str = ""
    secret: str = ""

    @staticmethod
    def of(workspace: Object) -> SourceRef | None:
        """What a Workspace says, as its schema has it."""
        said = (workspace.get("spec") or {}).get("source")
        if not said:
            return None
        secret = said.get("secretRef")
        named = f"{secret.get('namespace') or NAMESPACE}/{secret['name']}" if secret else ""
        return SourceRef(said["repository"], said["branch"], _plain(said.get("path") or ""), named)

    @staticmethod
    def kept(said: Mapping[str, str]) -> SourceRef | None:
        """What `as_kept` made, {} for none."""
        return SourceRef(**{name: said[name] for name in SourceRef._fields if name in said}) if said else None

    def as_kept(self) -> dict[str, str]:
        """As a record keeps it."""
        return {name: value for name, value in self._asdict().items() if value}

    def __str__(self) -> str:
        """For people. There is nothing secret in it."""
        return f"{self.repository} (branch {self.branch}{f', {self.path}/' if self.path else ''})"


class SourceFieldFault(NamedTuple):
    """What is wrong with a field."""

    field: str
    text: str
    hint: str


def fault(workspace: Object) -> SourceFieldFault | None:
    """What is wrong with a Workspace's source beyond its schema, which has been looked at."""
    spec: Object = workspace.get("spec") or {}
    said: Object = spec.get("source") or {}
    if not said:
        return None
    if spec.get("mount"):
        text = "stands beside a mount (spec.mount), and only one of both can be"
        return SourceFieldFault("spec.source", text, "leave out spec.source or spec.mount")
    url, path = said["repository"], said.get("path") or ""
    for field, branch in (("repository", "main"), ("branch", said["branch"])):
        try:
            address(url, branch)
        except SourceRefused as bad:
            return SourceFieldFault(f"spec.source.{field}", f"is not followed: {bad.what}", bad.hint)
    if not _is_directory(path):
        hint = "name a directory of the repository, from its top, without .. in it"
        return SourceFieldFault("spec.source.path", f"is {path!r}, which is no path of a directory", hint)
    return None


def _plain(path: str) -> str:
    """Without what makes no difference."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_directory(path: str) -> bool:
    if not path:
        return True
    parts = path.split("/")
    return not path.startswith("/") and _PARTS.fullmatch(path) is not None and ".." not in parts and ".git" not in parts

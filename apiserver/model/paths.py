"""Workspace paths and logical cluster names.

A workspace path is `root:shop:web`. A logical cluster name is 16 base36 characters and names the same workspace for as
long as it lives; the root's is `root`, as in kcp.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

ROOT = "root"
WILDCARD = "*"
NOWHERE = "~"
"""No logical cluster is called that, or by a name that begins so: it stands for what is hidden from whoever asks, with
what tells one such from another behind it. Nobody has access to it."""
HOMES = "user"
"""What paths of home workspaces begin with. A home stands in no workspace."""
SYSTEM_ADMIN = "system:admin"
"""As kcp calls the logical cluster that holds what is in force in every workspace. It is no workspace."""

_ODD = re.compile(r"[^A-Za-z0-9@._-]")
_LONGEST_HOME = 200
"""Characters of a user's name in a path."""

_SEGMENT = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SEGMENTS = re.compile(rf"(?:{_SEGMENT.pattern}\n)*")
_CLUSTER = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_path(text: str) -> bool:
    """Whether `text` is a well-formed workspace path (it may not exist)."""
    segments = text.split(":")
    return all(_SEGMENT.fullmatch(s) for s in segments)


def is_name(text: str) -> bool:
    """Whether `text` can name one workspace, so one segment of a path."""
    return _SEGMENT.fullmatch(text) is not None


def are_names(texts: Iterable[str]) -> bool:
    """The same of each."""
    return _SEGMENTS.fullmatch("".join([f"{text}\n" for text in texts])) is not None


def is_cluster(text: str) -> bool:
    """Whether `text` can be the name of a logical cluster (it may not exist)."""
    return _CLUSTER.fullmatch(text) is not None


def parent(path: str) -> str | None:
    """`root:shop:web` → `root:shop`; `root` → None, and so for a home (`user:ann`)."""
    head, colon, _ = path.rpartition(":")
    return head if colon and head != HOMES else None


def upwards(path: str) -> Iterator[str]:
    """A workspace's path, and then those of all that it stands in: `root:shop:web`, `root:shop`, `root`."""
    at: str | None = path
    while at is not None:
        yield at
        at = parent(at)


def base(path: str) -> str:
    """`root:shop:web` → `web`."""
    return path.rpartition(":")[2]


def is_within(path: str, top: str) -> bool:
    """Whether a workspace is `top`, or below it."""
    return path == top or path.startswith(f"{top}:")


def depth(path: str) -> tuple[int, str]:
    """Sorts workspaces: each before those that are in it."""
    return path.count(":"), path


def home(user: str) -> str:
    """The path of a user's home workspace: `ann@example.com` → `user:ann@example.com`. No two users have the same, nor
    is one below another's, whatever they are called."""
    name = _ODD.sub(_spelled, user)
    if len(name) > _LONGEST_HOME:
        name = f"{name[:_LONGEST_HOME]}~{hashlib.sha256(user.encode()).hexdigest()}"
    return f"{HOMES}:{name}"


def _spelled(odd: re.Match[str]) -> str:
    return "".join(f"~{byte:02X}" for byte in odd[0].encode())


def join(path: str, name: str) -> str:
    return f"{path}:{name}"

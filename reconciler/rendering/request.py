"""What one rendering is of.

Made by whoever knows which directories are rendered and what their programs may see (the sources of manifests), read by
this room. Paths are the repository's, with `/`, as git has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from reconciler.repository.objects import Repository, TreeEntry

Files = Callable[[], Iterable[tuple[str, TreeEntry]]]
"""Every file that a program may see: its path and what git has there, a blob or a link. May raise
RepositoryUnreadable."""


class Tool(StrEnum):
    KUSTOMIZE = "kustomize"
    HELM = "helm"


class RenderRequest(NamedTuple):
    """`directory`: the one that is rendered, a path of the repository. `repo`: where blobs are.

    `files`: asked for once, and only where no output is at hand; submodules are left out by who makes it, links are
    judged here. `digest`: stands for the tool, the directory and all files (what ids of trees say of them): two
    requests of one digest are one. Any text; it is hashed with more."""

    tool: Tool
    directory: str
    repo: Repository
    files: Files
    digest: str

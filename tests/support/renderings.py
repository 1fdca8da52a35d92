"""Requests to a renderer, of files that a test names: in a bare repository, without commits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pygit2

from reconciler.rendering.request import RenderRequest, Tool
from reconciler.repository.objects import Repository, TreeEntry


class RenderedFiles:
    """`asked`: how often files were asked for."""

    def __init__(self, directory: Path) -> None:
        self._git = pygit2.init_repository(directory, bare=True)
        self.repo = Repository(directory)
        self.asked = 0

    def request(
        self,
        files: Mapping[str, str],
        directory: str = "",
        tool: Tool = Tool.KUSTOMIZE,
        links: Mapping[str, str] | None = None,
    ) -> RenderRequest:
        """By path the content of each file, or where a link leads."""
        entries = [(path, self._entry(path, said, "blob")) for path, said in files.items()]
        entries += [(path, self._entry(path, said, "link")) for path, said in (links or {}).items()]

        def listed() -> list[tuple[str, TreeEntry]]:
            self.asked += 1
            return entries

        digest = hashlib.sha256(repr((tool, directory, entries)).encode()).hexdigest()
        return RenderRequest(tool, directory, self.repo, listed, digest)

    def _entry(self, path: str, said: str, kind: str) -> TreeEntry:
        blob = str(self._git.create_blob(said.encode()))
        return TreeEntry(path.rpartition("/")[2], blob, "link" if kind == "link" else "blob")

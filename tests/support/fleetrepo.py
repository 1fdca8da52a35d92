"""A desired branch made of {path: text}: real commits in a bare repository, at times that never change.

For unit tests of what reads a repository; it writes through reconciler/repository/write.py, without a work tree.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from reconciler.repository.folder import joined
from reconciler.repository.library import Sign, set_fsync
from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob, commit_tree, edit_tree, move_ref

BEGIN = 1_767_225_600
"""2026-01-01T00:00:00Z: the first commit's time. Each further one is a minute later."""

TREEPLANE_YAML = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\n"

Files = Mapping[str, str | bytes | Blob | None]


def plain_fleet(directory: Path) -> Path:
    """Makes `directory` the least that is a fleet, without git."""
    (directory / "workspaces" / "root").mkdir(parents=True, exist_ok=True)
    (directory / "treeplane.yaml").write_text(TREEPLANE_YAML)
    return directory


class FleetRepo:
    """`commit({path: text, path: None})` writes a commit on top of `head` and moves the branch. One that is there is
    taken as it is. `folder`: where the fleet stands in it, and what paths are said from; `elsewhere` commits beside."""

    def __init__(self, path: Path, branch: str = "main", folder: str = "") -> None:
        if not path.exists():
            subprocess.run(["git", "init", "--quiet", "--bare", f"--initial-branch={branch}", str(path)], check=True)
        set_fsync(False)
        self.path = path
        self.branch = branch
        self.folder = folder
        self.repo = Repository(path, (folder,))
        self.commits: list[str] = []

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"

    @property
    def head(self) -> str:
        found = self.repo.ref(self.ref)
        assert found is not None
        return found

    def commit(self, files: Files, message: str = "Change", parent: str | None = None, sign: Sign | None = None) -> str:
        """The new commit, also as the branch's head. `parent`: begin there, so that the branch is rewritten."""
        current = self.repo.ref(self.ref)
        parent = parent or current
        base = self.repo.commit(parent).tree if parent else None
        changes = self._changes(files)
        tree = edit_tree(self.repo, base, changes)
        when = BEGIN + 60 * len(self.commits)
        made = commit_tree(self.repo, tree, [parent] if parent else [], message, when, self.ref, current, sign)
        self.commits.append(made)
        return made

    def elsewhere(self, files: Files, message: str = "Nothing to the fleet") -> str:
        """A commit of files that are said from the top of the repository."""
        folder, self.folder = self.folder, ""
        try:
            return self.commit(files, message)
        finally:
            self.folder = folder

    def _changes(self, files: Files) -> dict[str, bytes | Blob | None]:
        said = {joined(self.folder, path): data for path, data in files.items()}
        return {path: data.encode() if isinstance(data, str) else data for path, data in said.items()}

    def merge(self, files: Files, other: str, sign: Sign | None = None) -> str:
        """A merge commit on top of `head` with `other` as second parent; `files` is what it brings."""
        current = self.head
        tree = edit_tree(self.repo, self.repo.commit(current).tree, self._changes(files))
        when = BEGIN + 60 * len(self.commits)
        made = commit_tree(self.repo, tree, [current, other], "Merge", when, self.ref, current, sign)
        self.commits.append(made)
        return made

    def reset(self, commit: str) -> None:
        """The branch back to a commit."""
        move_ref(self.repo, self.ref, commit, self.head)

    def link(self, target: str) -> Blob:
        """A symbolic link as the content of a file."""
        return Blob(str(self.repo.git.create_blob(target.encode())), b"120000")

    def files(self, commit: str) -> dict[str, str]:
        """Every file of a commit (of any branch), in a folder those below it."""
        out = {}
        pending = [("", self.repo.commit(commit).tree)]
        while pending:
            prefix, tree = pending.pop()
            for entry in self.repo.entries(tree):
                if entry.kind == "tree":
                    pending.append((f"{prefix}{entry.name}/", entry.id))
                else:
                    out[f"{prefix}{entry.name}"] = self.repo.blob(entry.id).decode(errors="replace")
        inside = joined(self.folder, "")
        return {path.removeprefix(inside): text for path, text in out.items() if path.startswith(inside)}

"""Files of a tree as a commit that is being made will have them. Called by whoever writes manifests back."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.layout.place import CROWDED
from reconciler.repository.objects import Repository, TreeEntry


@dataclass(slots=True)
class Draft:
    """On top of `base`, the id of a tree. `files`: the new content of each changed file, None where it goes, or a whole
    directory does; `counts`: how many names directories have; `trees`: directories of `base` that were looked up, None
    where there is none; `last`: the file of `base` that was read last, and its content."""

    repo: Repository
    base: str
    files: dict[str, bytes | None] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    trees: dict[str, str | None] = field(default_factory=dict)
    last: tuple[str, bytes | None] = ("", None)

    def read(self, path: str) -> bytes | None:
        """None where there is no such file."""
        if path in self.files:
            return self.files[path]
        if self.last[0] != path:
            entry = self._entry(path)
            self.last = path, self.repo.blob(entry.id) if entry is not None and entry.kind == "blob" else None
        return self.last[1]

    def write(self, path: str, data: bytes | None) -> bool:
        """Whether that is a change."""
        if data == self.read(path):
            return False
        self.files[path] = data
        return True

    def drop(self, directory: str) -> None:
        """A directory goes, with all that is in it."""
        inside = f"{directory}/"
        self.files = {path: data for path, data in self.files.items() if not path.startswith(inside)}
        self.files[directory] = None

    def is_there(self, directory: str) -> bool:
        """Whether there is anything of that name, or will be."""
        if any(path.startswith(f"{directory}/") for path, data in self.files.items() if data is not None):
            return True
        return directory not in self.files and self.repo.entry_at(self.base, directory) is not None

    def is_crowded(self, directory: str) -> bool:
        """Whether so much stands there that what comes had better be spread. Counts what comes."""
        count = self.counts.get(directory)
        if count is None:
            there = self._tree(directory)
            count = self.repo.width(there) if there is not None else 0
        self.counts[directory] = count + 1
        return count >= CROWDED

    def _tree(self, directory: str) -> str | None:
        if not directory:
            return self.base
        if directory not in self.trees:
            entry = self._entry(directory)
            self.trees[directory] = entry.id if entry is not None and entry.kind == "tree" else None
        return self.trees[directory]

    def _entry(self, path: str) -> TreeEntry | None:
        directory, _, name = path.rpartition("/")
        tree = self._tree(directory)
        return self.repo.pick(tree, (name,)).get(name) if tree is not None else None

"""What the words of `treeplane log`, `blame` and `trace` name: a workspace, an object, a commit, in any order.

Called by history. A kind that is known comes first, then what there is in the clone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from apiserver.model import paths
from reconciler.history.kinds import is_known
from reconciler.layout.tree import ROOT
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.review.revisions import BadRange


class HistoryWords(NamedTuple):
    """What the words of a command name; "" what none of them does."""

    path: str = ""
    kind: str = ""
    name: str = ""
    revision: str = ""

    def of_one(self) -> HistoryWords:
        """The same, where they name one object. Raises BadRange."""
        if not self.name:
            raise BadRange("of which object?", "name it, like deployment/web, and its workspace by --workspace")
        return self


class AskedClone(NamedTuple):
    """`top`: of its work tree, None where it has none; `here`: where one is."""

    repo: Repository
    top: Path | None
    here: Path

    def within(self, text: str) -> str:
        """A directory as the repository names it; "" where it is none of it."""
        there = (self.here / text).resolve()
        if self.top is None or not there.is_relative_to(self.top.resolve()):
            return ""
        return there.relative_to(self.top.resolve()).as_posix()

    def named(self, text: str) -> str:
        """A workspace's path, or its directory as the repository names it."""
        return text if paths.is_path(text) else self.within(text) or text


def read_words(clone: AskedClone, words: Iterable[str]) -> HistoryWords:
    """Raises BadRange for a word that names nothing, or a second one of a sort."""
    found: dict[str, str] = {}
    for word in words:
        for part, said in _word(clone, word).items():
            if part in found:
                raise BadRange(f"{found[part]} and {said} are both given", "name one")
            found[part] = said
    return HistoryWords(**found)


def _word(clone: AskedClone, word: str) -> dict[str, str]:
    """What one word names. A kind that is known comes first, then what is in the clone: a path, a commit, a directory;
    with a slash it may be an object of any other kind."""
    kind, slash, name = word.partition("/")
    if ".." in word.strip("./") and not slash:
        return {"revision": word}
    if is_known(kind) and "/" not in name:
        return {"kind": kind} | ({"name": name} if slash else {})
    if paths.is_path(word) and word.split(":", maxsplit=1)[0] == "root":
        return {"path": word}
    root = joined(clone.repo.folders[0], ROOT)
    if (clone.here / word).is_dir() or word.startswith((f"{root}/", "./", "../")) or word in (root, ".", ".."):
        return {"path": word}
    if clone.repo.resolve(word) or clone.repo.resolve(f"origin/{word}") or ".." in word or word.startswith("-"):
        return {"revision": word}
    if slash and name and "/" not in name:
        return {"kind": kind, "name": name}
    if "." in word and not slash:
        return {"kind": word}
    return {"revision": word}

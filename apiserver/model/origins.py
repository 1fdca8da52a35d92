"""Where an object comes from: a file of a commit, or what made it.

The reconciler gives each manifest an origin and writes it into the marks of the object; everybody else asks here what
the marks say. An origin has no line: one that is inserted above an object is no change of it. Who tells a person where
something stands looks the line up in the file as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from apiserver.model import commits, marks
from apiserver.model.commits import NONE, CommitRef

_KEYS = "keys/"
"""What the paths of Secrets begin with that git must not hold."""


class Origin(NamedTuple):
    """`path`: the file that declares the object, "" where none does. `generator`: what made it, "" where the file says
    it as it is; where both are given, the generator made it from that file. `commit`: the one that last changed what it
    says, of an object that is stored; NONE of a manifest, which is of the commit that is read."""

    path: str
    generator: str = ""
    commit: CommitRef = NONE

    @property
    def in_git(self) -> bool:
        """A file of a commit declares it, so its identity follows from commits; what stands in keys/, or is made of
        nothing but its workspace, has its workspace's."""
        path = self.path
        return path != "" and not path.startswith(_KEYS)

    @property
    def in_keys(self) -> bool:
        """A file that git must not hold declares it."""
        return self.path.startswith(_KEYS)

    def __str__(self) -> str:
        """For people: the file, or what made it where there is none."""
        return self.path or self.generator


SHIPPED = Origin("", "what ships with Treeplane")
COMPUTED = Origin("", "what every workspace has")
TYPED = Origin("", "what its type brings")
BOOTSTRAP = Origin("", "what a cluster of Kubernetes starts with")


def marks_of(path: str, commit: CommitRef) -> dict[str, str]:
    """What says of an object that a file declares it, and which commit last changed it."""
    return {marks.SOURCE_PATH: path, marks.SOURCE_COMMIT: str(commit)}


def file_of(obj: Mapping[str, object]) -> str:
    """The file that declares a stored object, "" where none does."""
    return path_in(_annotations(obj))


def path_in(annotations: Mapping[str, str]) -> str:
    return str(annotations.get(marks.SOURCE_PATH) or "")


def origin_of(obj: Mapping[str, object]) -> Origin | None:
    """Of a stored object; None for one that no file declares. Raises ValueError where the mark names no commit."""
    return origin_in(_annotations(obj))


def origin_in(annotations: Mapping[str, str]) -> Origin | None:
    path = path_in(annotations)
    return Origin(path, "", commits.parse(annotations.get(marks.SOURCE_COMMIT) or "")) if path else None


def _annotations(obj: Mapping[str, object]) -> Mapping[str, str]:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict)
    return metadata.get("annotations") or {}

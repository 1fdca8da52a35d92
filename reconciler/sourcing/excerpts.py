"""What is written to tenants' repositories, and what became of it: the shapes that its makers and its writer share.

An excerpt is what the status branch says of one workspace, for who reads the repository that its content comes from.
What is in it is its maker's to say (`statusbranch/excerpt`); here it is a tree with a message.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.repository.objects import Repository
from reconciler.sourcing.followed import FollowedSource


class MadeExcerpt(NamedTuple):
    """`tree`: its files, in the repository that it was made in. `message`: of the commit."""

    tree: str
    message: str


class WrittenExcerpt(NamedTuple):
    """One that was made before. `version`: see Excerpt. `branch`: of the repository, to which it was written, and
    `head` the commit there that has it. `tree`: its files."""

    version: str
    branch: str
    tree: str
    head: str

    def says(self, excerpt: Excerpt) -> bool:
        """Whether it is that one, where that is to be."""
        return (self.version, self.branch) == (excerpt.version, excerpt.place.address.branch)


Make = Callable[[Repository, WrittenExcerpt | None], MadeExcerpt]
"""Makes it in a repository here, which has the files of the one before (None: of none). Raises RepositoryError."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`place`: the repository, as one is followed, with the branch that is written. `version`: the same one is the same
    content."""

    place: FollowedSource
    version: str
    make: Make = field(compare=False, repr=False)


class Excerpted(NamedTuple):
    """What is known of one. Nothing of it is a secret, and no text of the remote's is in it. `written`: whether it is
    there as it is to be. `reason`, `fault`, `hint`: why it could not be written the last time, as of Found; "" if it
    could."""

    written: bool = False
    reason: str = ""
    fault: str = ""
    hint: str = ""

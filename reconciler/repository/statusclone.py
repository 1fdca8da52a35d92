"""What a clone has of a status branch that is in a repository of its own: what the remote with that address brought.

Called by local, for commands that work in a clone without a server. Nobody is asked: who wants the newest fetches it.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.repository.objects import Repository
from reconciler.repository.statusaddress import StatusAddress

_REMOTE = "status"
"""What the remote is called where a command is printed. Any name will do."""


class StatusClone(NamedTuple):
    """`repository`: as treeplane.yaml names it. None counts of a `clone` that others push to: what it tracks may be
    anybody's there."""

    clone: Repository | None
    repository: str

    def branches(self) -> list[str]:
        """Names of all."""
        found = self._tracked()
        names = self.clone.references if self.clone is not None else ()
        return [name.removeprefix(prefix) for name in names for prefix in found if name.startswith(prefix)]

    def newest(self, name: str) -> str | None:
        """Where one stands; of several remotes, by the first that has it."""
        if self.clone is None:
            return None
        refs = (self.clone.ref(prefix + name) for prefix in self._tracked())
        return next((ref for ref in refs if ref is not None), None)

    def _tracked(self) -> list[str]:
        if self.clone is None:
            return []
        wanted, found = self.repository.rstrip("/"), []
        for entry in self.clone.git.config:
            name = entry.name.removeprefix("remote.").removesuffix(".url")
            if entry.name == f"remote.{name}.url" and (entry.value or "").rstrip("/") == wanted:
                found.append(f"refs/remotes/{name}/")
        return found


def fetching(place: StatusAddress) -> str:
    """The command that has a clone of the fleet's repository fetch its status branch."""
    if not place.repository:
        return "git fetch origin"
    return f"git remote add {_REMOTE} {place.repository}; git fetch {_REMOTE}"

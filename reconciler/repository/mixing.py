"""Whether git's merge made of one file what was said of another: it takes a file that came for one that went where they
are much like each other, and the objects of a workspace are.

Called by proposals. git of the versions that are about knows no way to leave that out where it merges without a work
tree (`merge.renames` counts for nothing there).
"""

from __future__ import annotations

from reconciler.repository.difference import difference
from reconciler.repository.objects import Repository, TreeEntry

Changes = dict[str, TreeEntry | None]


def mixed(repo: Repository, base: str, ours: str, theirs: str, merged: str) -> list[str]:
    """The files, by path, of which the merge says anything else than the two sides do of them; [] is how it should be.
    All are ids of trees. Costs what they differ in."""
    here, there, made = _changes(repo, base, ours), _changes(repo, base, theirs), _changes(repo, ours, merged)
    strange = made.keys() - there.keys()
    lost = {path for path, entry in there.items() if path not in here and (path not in made or made[path] != entry)}
    # Of what one side has taken away and the other changed git leaves neither by itself.
    gone = {path for path, entry in there.items() if entry is not None and path in here and here[path] is None}
    return sorted(strange | lost | gone)


def _changes(repo: Repository, old: str, new: str) -> Changes:
    return {each.path: each.new for each in difference(repo, old, new)}

"""Counts how many commits of the branch those workspaces are behind that are held.

Called by who loads (commands/holder, commands/observer) after each load, in the thread that loads. What stands in the
store is registry/lags; it is counted anew from git at a start, and from the last load on then: each commit makes all
that are behind fall behind by one more.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model import commits
from apiserver.model.tables import Table
from apiserver.registry import lags, tree
from apiserver.registry.lags import MOST
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Store
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository

_KNOWN = 2 * MOST
"""Commits since which something is or was held: of more, it is looked again which those are."""


class Lagging:
    """Of one run of who loads."""

    def __init__(self, store: Store, repo: Repository) -> None:
        self._store, self._repo = store, repo
        self._head = ""
        """Up to which commit it is counted, "" before the first time."""
        self._told: dict[str, int] = {}
        self._known: set[str] = set()
        """Since which commits something is held, as far as was looked."""

    def count(self, news: Iterable[str] | None = None, head: str = "") -> None:
        """`news`: the workspaces among which those are that are held since the last time; None: any. `head`: the
        branch's, where that is held as a whole."""
        head = head or tree.fleet(self._store).commit.id
        if not self._store.scan_rows(Table.HELD, limit=1):
            self._known.clear()
        elif not self._head or news is None or len(self._known) > _KNOWN:
            self._known = self._since(row.key for row in rows(self._store, Table.HELD))
        else:
            self._known |= self._since(news)
        found = self._counted(head)
        if found != (self._told if self._head else lags.counted(self._store)):
            self._store.write(lags.put(found))  # nobody waits for it: writes that are commits come through here
        self._head, self._told = head, found

    def _since(self, paths: Iterable[str]) -> set[str]:
        records = (tree.workspace_at(self._store, path) for path in paths)
        found = (lags.since(self._store, record) for record in records if record is not None)
        return {commit for commit in found if commit and not commits.parse(commit).repository}

    def _counted(self, head: str) -> dict[str, int]:
        """Of each of those commits; that which holds somebody is one that he is behind."""
        found: dict[str, int] = {}
        wanted = set(self._known)
        before = self._told
        at: str | None = head
        for number in range(1, MOST + 1):
            if at is None or not wanted:
                break
            if at == self._head:
                found |= {each: min(before[each] + number - 1, MOST) for each in wanted if each in before}
            if at in wanted:
                found[at] = number
            wanted -= found.keys()
            at = self._parent(at)
        return found | dict.fromkeys(wanted, MOST)

    def _parent(self, commit: str) -> str | None:
        try:
            return next(iter(self._repo.commit(commit).parents), None)
        except RepositoryError:
            return None

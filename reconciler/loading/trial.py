"""What a push would come to, before it is taken: it is judged as the loader would, on top of what is served, and
nothing of it stays.

Called for pushes to the repository that the server hosts (commands/pushes), in a thread of its own. The commits are
loaded, one after the other, into an overlay of the store at one moment. So what is found out is what would happen,
moves and whoever follows included; it costs what the change costs, and the loader does not wait. What is large, or
takes long, is not judged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from apiserver.model.commits import own
from apiserver.registry import tree
from apiserver.storage.protocol import Store, View
from reconciler.layout.manifest import Manifest
from reconciler.layout.weight import changed
from reconciler.loading.changeset import ChangeSet, together
from reconciler.loading.identities import IdentitiesAside
from reconciler.loading.loader import BesideStore, Loader
from reconciler.loading.overlay import Overlay
from reconciler.loading.step import Secrets
from reconciler.loading.unsealing import NO_KEYS
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories

_COMMITS, _FILES, _BYTES = 100, 2000, 8 * 1024 * 1024
"""Of one push, beside which nothing is judged: commits, files and directories that differ, bytes of new files."""
_LINE = re.compile(r"^(.*?)(?::\d+){1,2}: ", re.DOTALL)
"""An error's place."""


class NotTried(Exception):
    """It is not judged; the text says why."""


@dataclass(frozen=True, slots=True)
class Tried:
    """`held`: the workspaces that are held for it and were not, or not for that, and why; `problems`: why nothing of it
    is served at all. `changes`: what becomes of all."""

    held: Mapping[str, list[str]]
    problems: Sequence[str]
    changes: ChangeSet

    @property
    def holds(self) -> bool:
        return bool(self.held or self.problems)


@dataclass(frozen=True, slots=True)
class Trial:
    """`loader`: who would load it; `secrets`: see its own. `identities`: the directory of keys. `seconds`: that a push
    may take at most."""

    loader: Loader
    secrets: Secrets
    identities: Path
    seconds: float = 2.0

    def run(self, view: View, repo: Repository, old: str, new: str) -> Tried:
        """`view`: of the store; `repo`: has `new`, which is pushed on top of `old`. Raises NotTried and
        RepositoryError."""
        fleet = tree.fleet(view)
        if not fleet.loaded or fleet.holder or fleet.shown:
            raise NotTried("nothing is served yet")
        if fleet.arriving:
            raise NotTried("a commit is being loaded")
        _require_small(repo, old, new)
        store = Overlay(view)
        loader = self.aside(store, repo)
        until = time.monotonic() + self.seconds
        loader.meanwhile = lambda: _require_time(until)
        # What was pushed last may not be loaded yet, and is not this push's fault.
        first = loader.load(own(old))
        before = tree.held(store)
        loaded = loader.load(own(new))
        problems = () if first.problems else tuple(map(str, loaded.problems))
        return Tried(newly(before, tree.held(store)), problems, together(loaded.steps))

    def aside(self, store: Store, repo: Repository) -> Loader:
        """One that does as the loader does, to a store that goes, by the commits of `repo`."""
        sources = self.loader.sources.repositories
        repositories = sources.beside(repo) if sources is not None else Repositories(repo)
        return self.loader.aside(store, repositories, self._around())

    def _around(self) -> BesideStore:
        """Secrets stand where their workspaces were, wherever these are here. Nothing is decrypted for what may never
        be served: an encrypted Secret stays as it is."""
        was: dict[str, str] = {}

        def carry(places: Mapping[str, str]) -> None:
            was.update({new: was.get(old, old) for old, new in places.items()})

        def of(path: str) -> tuple[Manifest, ...]:
            return self.secrets(was.get(path, path))

        return BesideStore(IdentitiesAside(self.identities), of, carry, lambda _: NO_KEYS)


def newly(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Of workspaces that are held, those that were not, or not for the same. On which line an error stands makes no
    difference."""
    out: dict[str, list[str]] = {}
    for path, errors in after.items():
        known = {_without_line(error) for error in before.get(path, ())}
        found = [error for error in errors if _without_line(error) not in known]
        if found:
            out[path] = found
    return out


def _without_line(error: str) -> str:
    return _LINE.sub(r"\1: ", error, count=1)


def _require_small(repo: Repository, old: str, new: str) -> None:
    if len([*islice(repo.new_commits(new, old), _COMMITS + 1)]) > _COMMITS:
        raise NotTried(f"it has more than {_COMMITS} commits")
    files, size = changed(repo, repo.fleet_at(old), repo.fleet_at(new), _FILES)
    if files > _FILES:
        raise NotTried(f"it changes more than {_FILES:,} files and directories")
    if size > _BYTES:
        raise NotTried(f"its files have more than {_BYTES >> 20} MiB")


def _require_time(until: float) -> None:
    if time.monotonic() > until:
        raise NotTried("it takes longer than is waited for")

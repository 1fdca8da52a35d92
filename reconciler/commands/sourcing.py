"""Follows the repositories that workspaces have their content from, while the server holds its fleet.

Made by the holder, and by who observes one, which call `serve` at each look; the follower (room sourcing) has threads
of its own and rings when something is new. What is to be followed says the store (loading/sourcelist), with the Secrets
of the workspaces' parents; where a source's branch is by now, the loader asks (`remotes`).
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from apiserver.model.commits import NONE, CommitRef
from apiserver.model.conditions import Condition
from apiserver.model.hostedrepository import URL
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.commands.excerpting import FollowedSources
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.sourceasking import SourceAsking
from reconciler.commands.sourcesettings import follow_settings, trust
from reconciler.controllers import sourcecondition
from reconciler.controllers.sourcecondition import told
from reconciler.loading import sourcelist
from reconciler.loading.loader import Loader
from reconciler.loading.remotes import Remotes
from reconciler.loading.rendersahead import PreparedRenderings
from reconciler.loading.sourcedrenderings import SourcedRenderings
from reconciler.loading.sourcelist import Judged, ListedSource
from reconciler.loading.sources import Sources
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository import origin
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Mirror
from reconciler.repository.sourcerefs import NO_CREDENTIALS, SourceCredentials, SourceRefused, address, credentials
from reconciler.sourcing.followed import FollowedSource, Found, SourceFollowing
from reconciler.sourcing.follower import SourceFollower

_SELDOM = 1.0
"""Seconds at least between two looks at what is to be followed, where nothing rings."""
_ASKED = 0.2
"""The same where somebody waits for what a look finds."""
_END = 5.0
"""Seconds that what is under way may take at the end."""
_WAITS = told(None, "Fetching", "nothing of its repository is here yet")


@dataclass(slots=True)
class _Known:
    """What is there, by name: replaced as a whole, since the loader's threads read it. `followed`: what is; `faults`:
    why some are not."""

    sources: Mapping[str, ListedSource] = field(default_factory=dict)
    followed: FollowedSources = field(default=FollowedSources({}, {}))
    faults: Mapping[str, SourceRefused] = field(default_factory=dict)


class Sourcing:
    """`start`, `serve`, `close`. `ring`: wakes whoever calls `serve`. `renders`: for what is rendered there. `shows`:
    it is done for who only shows what another server records: for what that serves, of which nothing may be here, and
    nothing is told of it."""

    def __init__(
        self,
        settings: ReconcileSettings,
        store: Store,
        mirror: Mirror,
        ring: Callable[[], None],
        renders: Renders = NOWHERE,
        *,
        shows: bool = False,
    ) -> None:
        self._settings, self._store, self._ring, self._shows = settings, store, ring, shows
        self._repositories = mirror.repositories
        self._renderings = PreparedRenderings(renders, self._rang)
        self._ahead = SourcedRenderings(store, Sources(renders, mirror.repositories))
        self.remotes = Remotes(self._head, tuple(_places(settings, mirror)), is_rendered=self._renderings.is_ready)
        self._counts: Mapping[tuple[str, str], str] = {}
        """By name and branch the head that counts: one of which it is known what programs make of it."""
        self._rendering: dict[str, CommitRef] = {}
        """By name the head that is to count, which is rendered, or was."""
        self._known, self._judged = _Known(), Judged()
        self._told: dict[str, tuple[str, Condition]] = {}
        """By the workspace's path the source's name, and what is said of it."""
        self._commit = NONE
        self._again, self._seen, self._news = 0.0, -1, False
        self._asking = SourceAsking(store)
        self._follower: SourceFollower | None = None

    def lend(self, loader: Loader) -> None:
        """Has it know of tenants' repositories, and wait for nothing of them."""
        loader.steppers.remotes, loader.sources.theirs = self.remotes, self._renderings

    def start(self) -> None:
        """Once all workspaces are known."""
        assert self._repositories.sources is not None
        self._follower = SourceFollower(self._repositories.sources, self._heard, follow_settings(self._settings))
        self._follower.start()

    def close(self) -> None:
        self._renderings.drop()
        if self._follower is not None:
            self._follower.close(_END)
            self._follower = None

    def ask(self, path: str) -> None:
        """Somebody wants the source of the workspace at `path` looked at now."""
        follower, owner = self._follower, self._asking.ask(path)
        if follower is not None and owner:
            follower.look_now([name for name, each in self._known.sources.items() if each.path == owner])
            self._ring()

    def serve(self, judge_again: Callable[[Collection[str]], object]) -> None:
        """Does what is due, and tells whoever asked for a look."""
        self._serve(judge_again)
        follower = self._follower
        if follower is not None and self._asking.waits():
            known = self._known.sources
            self._asking.answer(known.values(), {name: follower.found(name) for name in known}, self._judged)

    def _serve(self, judge_again: Callable[[Collection[str]], object]) -> None:
        """Follows what is to be followed by now, and has those workspaces judged again for which there is news."""
        follower, now, revision = self._follower, time.monotonic(), self._store.revision()
        if follower is None or not (self._news or (revision != self._seen and now >= self._again)):
            return
        self._again, self._news, self._seen = now + _SELDOM, False, revision
        commit = tree.fleet(self._store).commit
        if commit != self._commit:
            self._commit = commit
            sourcelist.told_of(self._store, self._judged)
        self._follow(follower)
        known = self._known
        found = {name: follower.found(name) for name in known.sources}
        came = {path for path in self._renderings.came() if tree.workspace_at(self._store, path) is not None}
        heads = self._count(known, found)
        due = came | sourcelist.due(self._store, known.sources.values(), heads, self._judged, lost=self._shows)
        if due:
            judge_again(due)
            self._judged |= {s.path: (s.ref, heads.get(s.name, "")) for s in known.sources.values() if s.path in due}
            self._follow(follower)  # what is served now is kept, and who came back may want another one
        if not self._shows:
            self._tell(known, found)

    def wait(self, longest: float) -> float:
        """How many seconds it takes until `serve` has something to do, if nothing rings; at most `longest`."""
        if self._asking.waits():
            longest = min(longest, _ASKED)
        if self._follower is None or self._store.revision() == self._seen:
            return longest
        return min(longest, max(0.0, self._again - time.monotonic()))

    def followed(self) -> FollowedSources:
        """Another tuple where it may be others than before."""
        return self._known.followed

    # -- what is to be followed

    def _follow(self, follower: SourceFollowing) -> None:
        found, wanted, faults = sourcelist.listed(self._store), dict[str, FollowedSource](), dict[str, SourceRefused]()
        for name, each in found.items():
            if not each.is_wanted and self._has(each):
                continue
            try:
                wanted[name] = self._followed(each)
            except SourceRefused as bad:
                faults[name] = bad
        self._known = _Known(found, FollowedSources(found, wanted), faults)
        follower.follow(wanted, found.keys() - wanted.keys())

    def _has(self, source: ListedSource) -> bool:
        """Whether all is here that is to be kept of a source."""
        try:
            return all(self._repositories.of(CommitRef(source.name, each)).has(each) for each in source.keep)
        except RepositoryError:
            return False

    def _followed(self, source: ListedSource) -> FollowedSource:
        """Raises SourceRefused."""
        trusted, remedy = trust(self._settings, source.path)
        place = address(source.ref.repository, source.ref.branch)
        return FollowedSource(place, self._credentials(source), trusted, remedy, source.keep)

    def _credentials(self, source: ListedSource) -> SourceCredentials:
        """Of a Secret in the workspace around, whose the workspace.yaml is. Raises SourceRefused."""
        if not source.ref.secret:
            return NO_CREDENTIALS
        record = tree.workspace_at(self._store, source.path)
        parent = tree.workspace_at(self._store, record.parent) if record is not None else None
        namespace, _, name = source.ref.secret.partition("/")
        found = (
            Objects(self._store).get(Key("secrets", parent.cluster, namespace, name)) if parent is not None else None
        )
        if parent is None or found is None:
            where = parent.path if parent is not None else "the workspace around"
            raise SourceRefused(
                f"there is no Secret {namespace}/{name} in {where}", f"put it into keys/secrets/{where}/"
            )
        try:
            data = {key: base64.b64decode(value, validate=True) for key, value in (found.get("data") or {}).items()}
        except (binascii.Error, ValueError, TypeError):
            raise SourceRefused(f"the Secret {namespace}/{name} has a value that is not base64") from None
        try:
            return credentials(data)
        except SourceRefused as bad:
            raise SourceRefused(f"the Secret {namespace}/{name} of {parent.path}: {bad.what}", bad.hint) from None

    # -- what is known of it

    def _head(self, name: str, branch: str) -> str:
        known, follower = self._known.sources.get(name), self._follower
        if known is None or follower is None or known.ref.branch != branch:
            return ""
        return self._counts.get((name, branch), "")

    def _count(self, known: _Known, found: Mapping[str, Found]) -> dict[str, str]:
        """Has heads count of which all is known; by name those that do."""
        counts, heads = dict[tuple[str, str], str](), dict[str, str]()
        for name, source in known.sources.items():
            key, head = (name, source.ref.branch), found[name].commit
            if head and (head == self._counts.get(key) or self._is_rendered(source, head)):
                counts[key] = head
            elif head and key in self._counts:
                counts[key] = self._counts[key]
            heads[name] = counts.get(key, "")
        self._counts = counts
        self._rendering = {name: at for name, at in self._rendering.items() if name in known.sources}
        return heads

    def _is_rendered(self, source: ListedSource, head: str) -> bool:
        """Of what is served already nothing is looked at: after a start that is so of most. What was rendered counts,
        though not all of it be kept: who misses something waits for that by himself."""
        at, record = CommitRef(source.name, head), tree.workspace_at(self._store, source.path)
        if record is not None and record.source == {**source.ref.as_kept(), "commit": str(at)}:
            return True
        if self._rendering.get(source.name) == at:
            return not self._renderings.is_busy(source.path)
        self._rendering[source.name] = at
        return self._renderings.has(source.path, self._ahead.of(source, at))

    def render_again(self, paths: Collection[str]) -> None:
        """What workspaces have there, at what counts and at what is served of it."""
        for source in self._known.sources.values():
            if source.path in paths and source.is_wanted:
                head = CommitRef(source.name, self._counts.get((source.name, source.ref.branch), ""))
                self._renderings.again(source.path, source.path, self._ahead.of_source(source, head))
        for path in paths:
            for above, some in self._ahead.of_inherited(path):
                self._renderings.again(above, path, some)
        self._rang()

    def _heard(self, _names: set[str]) -> None:
        """Called by a thread of the follower's."""
        self._rang()

    def _rang(self) -> None:
        """Called by threads of who renders, too."""
        self._news = True
        self._ring()

    def _tell(self, known: _Known, found: Mapping[str, Found]) -> None:
        said: dict[str, tuple[str, Condition]] = {}
        for name, source in known.sources.items():
            if not source.is_wanted:
                continue
            fault, before = known.faults.get(name), self._told.get(source.path)
            if fault is not None:
                condition = told(False, "SecretRefused", str(fault))
            elif found[name].looked:
                condition = _said(source, found[name])
            elif before is None:
                # What stood there before a restart is so until there was a look: it is neither mended by that nor lost.
                condition = sourcecondition.standing(self._store, source.path) or _WAITS
            else:
                condition = before[1] if before[0] == name else _WAITS
            said[source.path] = name, condition
            if before is None or before[1] != condition:
                sourcecondition.tell(self._store, source.path, condition)
        self._told = said


def _said(source: ListedSource, found: Found) -> Condition:
    """After a look."""
    if found.fault:
        stays = "; what is served of it stays" if found.commit else ""
        hint = f" ({found.hint})" if found.hint else ""
        return told(False, found.reason, f"{source.ref}: {found.fault}{hint}{stays}")
    return told(True, "Followed", f"{source.ref} is followed")


def _places(settings: ReconcileSettings, mirror: Mirror) -> list[str]:
    """Where the fleet's own repository is."""
    if mirror.is_remote:
        return [settings.source]
    found = origin.url(mirror.repository) if not settings.hosted else ""
    return [*([settings.url.rstrip("/") + URL] if settings.hosted else ()), *([found] if found else ())]

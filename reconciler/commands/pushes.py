"""Answers hooks that ask whether a push is taken, while the fleet refuses some.

Called by the holder, for the repository that it hosts, as long as it follows the branch. Two things are asked. Whether
whoever pushes may touch what the push touches, and whether it is signed, is gate's to say; where that cannot be found
out the push is refused. What it comes to is trial's, in a thread of its own, where the fleet refuses what would newly
hold a workspace; what cannot be judged so is taken, with the reason: the branch is judged again when it is loaded.
Files are spool's, words answers'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import orjson

from apiserver.endpoints.pushhooks import MUST, REFUSES
from apiserver.model.commits import own
from apiserver.model.failures import described
from apiserver.registry import tree
from apiserver.storage.protocol import Store, View
from reconciler.commands import answers
from reconciler.commands.spool import PushQuestion, Spool
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import REFUSE, FleetConfig, read_fleet
from reconciler.loading.gate import Gate
from reconciler.loading.trial import NotTried, Trial
from reconciler.loading.vouching import Vouching
from reconciler.repository.errors import RepositoryError, RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord
from reconciler.repository.quarantine import PushedObjects

log = logging.getLogger(__name__)

_LOOK = 5.0
"""Seconds after which files are looked through without having been told to."""
_LARGEST = 8 * 1024 * 1024
"""Bytes of what a push brings, beside which it is not judged."""
_TAKE = "take\n"


@dataclass(frozen=True, slots=True)
class PushJudge:
    """`mirror`: a repository that has all of the hosted one; `ref`: the served branch's. `vouching`: who stands for
    what is pushed. `folders`: of the fleet, see Repository."""

    git_dir: Path
    mirror: Path
    ref: str
    store: Store
    trial: Trial
    vouching: Vouching
    folders: tuple[str, ...] = ("",)

    def answer(self, asked: PushQuestion) -> str:
        """What the hook reads: whether to refuse, and what to say."""
        if asked.ref != self.ref:
            return _TAKE
        try:
            return self._judged(asked)
        except RepositoryError as error:
            log.info("what is pushed could not be read: %s", error)
            return _unjudged("what it brings could not be read")
        except Exception as error:
            log.error("a push could not be judged\n%s", described(error))
            return _unjudged("of a fault in this program; the log says more")

    def _judged(self, asked: PushQuestion) -> str:
        incoming = PushedObjects(self.git_dir, asked.name)
        with incoming.read(self.mirror, self.folders) as repo, self.store.view() as view:
            for commit in (asked.old, asked.new):
                repo.commit(commit)  # it is there
            config = served_config(repo, tree.fleet(view).commit.id)
            if not repo.is_ancestor(asked.old, asked.new):
                return _TAKE  # a branch that is rewritten is refused elsewhere
            barred = self._barred(repo, view, config, asked)
            if barred:
                return _refuse(answers.barred(barred))
            if config.push != REFUSE:
                return _TAKE
            try:
                if incoming.size(_LARGEST) > _LARGEST:
                    raise NotTried(f"it brings more than {_LARGEST >> 20} MiB")
                found = self.trial.run(view, repo, asked.old, asked.new)
            except NotTried as why:
                return f"{_TAKE}taken without being judged: {why}\n"
        return _refuse(answers.refusal(found)) if found.holds else _TAKE

    def _barred(
        self, repo: Repository, view: View, config: FleetConfig, asked: PushQuestion
    ) -> tuple[LayoutError, ...]:
        vouching = self.vouching
        if asked.pusher:
            vouching = vouching.also(asked.new, PushRecord(asked.old, _read(asked.pusher)))
        gate = Gate(repo, vouching, self.ref.removeprefix("refs/heads/"))
        return gate.pushed(view, own(asked.old), own(asked.new), config, tree.fleet(view))


class Pushes:
    """From `begin` to `end` hooks are answered. `rung`: called from the thread whenever a hook rings."""

    def __init__(self, judge: PushJudge, rung: Callable[[], None]) -> None:
        self._judge, self._rung = judge, rung
        self._spool = Spool(judge.git_dir)
        self._stop = Event()
        self._thread: Thread | None = None

    def begin(self, repo: Repository) -> None:
        """`repo`: see `settle`."""
        self.settle(repo)
        try:
            self._spool.begin()
        except OSError as error:
            log.warning("pushes are not judged before they are taken: %s", error)
            return
        self._thread = Thread(target=self._run, name="pushes", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """What the fleet says of pushes stays, so that they are told that nobody judged them."""
        thread, self._thread = self._thread, None
        self._stop.set()
        self._spool.ring()
        if thread is not None:
            thread.join(timeout=10)
        self._spool.end()
        self._stop.clear()

    def settle(self, repo: Repository) -> None:
        """Has hooks ask if the commit that is served by now says so, and not otherwise. `repo` has that commit."""
        try:
            config = served_config(repo, tree.fleet(self._judge.store).commit.id)
        except RepositoryError as error:
            log.warning("no push is taken: %s", error)
            ask(self._judge.git_dir, on=True, must=True)
            return
        ask(self._judge.git_dir, on=config.asks_who or config.push == REFUSE, must=config.asks_who)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._spool.wait(_LOOK) and not self._stop.is_set():
                    self._rung()
                for asked in self._spool.questions():
                    self._spool.answer(asked.name, self._judge.answer(asked))
                self._spool.sweep()
            except OSError as error:
                log.warning("a push is not answered: %s", error)
                self._stop.wait(1)


def ask(git_dir: Path, *, on: bool, must: bool = False) -> None:
    """Whether hooks of the hosted repository ask at all. `must`: and take nothing without an answer."""
    file = git_dir / REFUSES
    try:
        if on:
            file.parent.mkdir(exist_ok=True)
            fresh = file.with_suffix(".new")
            fresh.write_text(f"{MUST}\n" if must else "")
            fresh.replace(file)
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        log.warning("what becomes of pushes cannot be said: %s", error)


def served_config(repo: Repository, commit: str) -> FleetConfig:
    """What a fleet says that is served at a commit; the defaults where nothing is. Raises RepositoryUnreadable where it
    cannot be told: it may say who may push."""
    try:
        return read_fleet(repo, repo.commit(commit).tree) if commit else FleetConfig("")
    except BadFile as bad:
        raise RepositoryUnreadable(f"treeplane.yaml as it is served cannot be read ({bad})") from bad


def _read(pusher: str) -> Mapping[str, Any]:
    """Of what is none, nobody."""
    try:
        found = orjson.loads(pusher)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _refuse(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in ("refuse", *lines))


def _unjudged(why: str) -> str:
    """The hook says what follows from that (pushhooks.REFUSES)."""
    return f"unjudged\n{why}\n"

"""Answers hooks that ask whether a push is taken, while the fleet refuses those that would newly hold a workspace.

Called by the holder, for the repository that it hosts, as long as it follows the branch. What a push comes to is
trial's to find out, in a thread of its own; files are spool's, words answers'. A push that cannot be judged is taken,
with the reason: the branch is judged again when it is loaded. Where the answer decides who may push it is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from apiserver.endpoints.pushhooks import MUST, REFUSES
from apiserver.model.failures import described
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.commands import answers
from reconciler.commands.spool import PushQuestion, Spool
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import REFUSE, read_fleet
from reconciler.loading.trial import NotTried, Trial
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.quarantine import PushedObjects

log = logging.getLogger(__name__)

_LOOK = 5.0
"""Seconds after which files are looked through without having been told to."""
_LARGEST = 8 * 1024 * 1024
"""Bytes of what a push brings, beside which it is not judged."""
_TAKE = "take\n"


@dataclass(frozen=True, slots=True)
class PushJudge:
    """`mirror`: a repository that has all of the hosted one; `ref`: the served branch's."""

    git_dir: Path
    mirror: Path
    ref: str
    store: Store
    trial: Trial

    def answer(self, asked: PushQuestion) -> str:
        """What the hook reads: whether to refuse, and what to say."""
        if asked.ref != self.ref:
            return _TAKE
        try:
            return self._judged(asked)
        except NotTried as why:
            return _unjudged(str(why))
        except RepositoryError as error:
            log.info("what is pushed could not be read: %s", error)
            return _unjudged("what it brings could not be read")
        except Exception as error:
            log.error("a push could not be judged\n%s", described(error))
            return _unjudged("of a fault in this program; the log says more")

    def _judged(self, asked: PushQuestion) -> str:
        incoming = PushedObjects(self.git_dir, asked.name)
        if incoming.size(_LARGEST) > _LARGEST:
            raise NotTried(f"it brings more than {_LARGEST >> 20} MiB")
        with incoming.read(self.mirror) as repo, self.store.view() as view:
            for commit in (asked.old, asked.new):
                repo.commit(commit)  # it is there
            if not refuses(repo, tree.fleet(view).commit.id) or not repo.is_ancestor(asked.old, asked.new):
                return _TAKE  # a branch that is rewritten is refused elsewhere
            found = self.trial.run(view, repo, asked.old, asked.new)
        return "".join(f"{line}\n" for line in ("refuse", *answers.refusal(found))) if found.holds else _TAKE


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
        ask(self._judge.git_dir, on=refuses(repo, tree.fleet(self._judge.store).commit.id))

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


def refuses(repo: Repository, commit: str) -> bool:
    """Whether a fleet that is served at a commit refuses what would newly hold a workspace."""
    try:
        return bool(commit) and read_fleet(repo, repo.commit(commit).tree).push == REFUSE
    except (RepositoryError, BadFile):
        return False


def _unjudged(why: str) -> str:
    """The hook says what follows from that (pushhooks.REFUSES)."""
    return f"unjudged\n{why}\n"

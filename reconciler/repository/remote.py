"""The source where it is a URL: fetched and pushed by the git command line, so that credentials, proxies and host keys
are the user's.

Called by mirror, from several threads and processes: a look at the source, a push of statuses and a push of writes may
be under way at a time, and none waits for another. What a look found before one of our own pushes is not news but the
past: it looks again.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from apiserver import gitvouch
from reconciler.repository.command import GitAnswer, Patience, git
from reconciler.repository.credentials import apart
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryUnreadable, redact
from reconciler.repository.incoming import incoming
from reconciler.repository.objects import Repository
from reconciler.repository.shared import SharedLock
from reconciler.repository.write import move_ref

SOURCE = "origin"
_HEADS = "refs/heads/"
_AWAY = "check the URL, the network and your credentials; it is tried again"
_NONE: Mapping[str, str] = MappingProxyType({})
_LOOKS = 5
"""How often a look that our own pushes overtook is taken again."""


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """`ask`: for questions with short answers. `fetch`, `push`: for what moves objects. `stall`: seconds without a byte
    after which the connection itself gives up (ssh, and http with all that it runs through). `connect`: seconds for
    ssh's connection."""

    ask: Patience = field(default=Patience(total=20))
    fetch: Patience = field(default=Patience(total=120, begin=60, quiet=120))
    push: Patience = field(default=Patience(total=120, begin=20, quiet=120))
    stall: int = 30
    connect: int = 10


DEFAULT = RemoteSettings()


class Remote:
    """One URL, whose branches are tracked in `repository`. Methods are safe from every thread, of several processes."""

    def __init__(
        self, repository: Repository, url: str, settings: RemoteSettings = DEFAULT, name: str = SOURCE
    ) -> None:
        """`name`: by which its branches are tracked there; no two share one."""
        self._repository = repository
        self._url = url
        self._settings = settings
        self.tracks = f"refs/remotes/{name}/"
        """Below which its branches are tracked."""
        # One file of git's says what the last fetch brought, and it is the source's.
        self._by_name = name == SOURCE
        suffix = "" if self._by_name else f"-{name}"
        self._looking = SharedLock(repository.git_dir / f"treeplane-looking{suffix}")
        # Of the tracked branches, and of how often we have pushed.
        self._tracking = SharedLock(repository.git_dir / f"treeplane-tracking{suffix}")
        self._until = math.inf

    def close(self, seconds: float) -> None:
        """Nobody waits longer than that any more, for what is under way and for what begins."""
        self._until = time.monotonic() + seconds

    def branches(self) -> list[str]:
        """Full names of all branches. Raises RepositoryUnreadable."""
        answer = self._run("ls-remote", "--heads", "origin", patience=self._settings.ask)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{redact(self._url)} does not answer: {answer.error}", _AWAY)
        return [line.partition("\t")[2] for line in answer.output.splitlines()]

    def look(self, branches: list[str]) -> list[str | None]:
        """Where the branches stand, None for one that is not there; their objects are here then, and so they are
        tracked. One look at a time. Raises RepositoryUnreadable."""
        with self._looking:
            for _ in range(_LOOKS):
                before = self._tracking.number
                found = self._fetched(branches)
                with self._tracking:
                    if self._tracking.number == before:
                        for branch, commit in zip(branches, found, strict=True):
                            self._track(branch, commit)
                        return found
        raise RepositoryUnreadable(f"{redact(self._url)} is pushed to without a pause", "it is tried again")

    def refs(self, prefix: str) -> list[str]:
        """Full names of all refs below a prefix. Raises RepositoryUnreadable."""
        answer = self._run("ls-remote", "origin", f"{prefix}*", patience=self._settings.ask)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{redact(self._url)} does not answer: {answer.error}", _AWAY)
        return [line.partition("\t")[2] for line in answer.output.splitlines()]

    def named(self, refs: Iterable[str]) -> dict[str, str]:
        """Which of some refs, by their full names, the source has, and the commits that they lead to, whose objects
        need not be here. Raises RepositoryUnreadable."""
        wanted = {name: ref for ref in refs for name in (ref, f"{ref}^{{}}")}
        answer = self._run("ls-remote", "--", "origin", *wanted, patience=self._settings.ask)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{redact(self._url)} does not answer: {answer.error}", _AWAY)
        there = {name: commit for commit, _, name in (line.partition("\t") for line in answer.output.splitlines())}
        return {wanted[name]: there[name] for name in wanted if name in there}  # what a tag is of comes behind it

    def bring(self, wanted: str) -> bool:
        """Fetches a commit by its id, with all that it has, and no ref moves. Whether the source gave it. Raises
        RepositoryUnreadable where it does not answer."""
        answer = self._run(
            *("fetch", "--progress", "--no-tags", "--refmap=", "--no-write-fetch-head", "--", "origin", wanted),
            patience=self._settings.fetch,
        )
        return answer.code == 0 and self._repository.has(wanted)

    def tracked(self, branch: str) -> str | None:
        """Where the branch stood when it was last looked at, or pushed."""
        with self._tracking:
            return self._repository.ref(self.tracks + branch)

    def push(self, branch: str, commit: str, expected: str | None) -> None:
        """Makes `commit` the branch's if that still is `expected` (None: does not exist). Raises PushRejected,
        BranchCheckedOut and RepositoryUnreadable."""
        ref = _HEADS + branch
        lease = f"--force-with-lease={ref}:{expected or ''}"
        arguments = ("push", "--porcelain", "--progress", "--no-verify", lease, "origin", f"{commit}:{ref}")
        answer = self._run(*arguments, patience=self._settings.push)
        if answer.code == 0:
            with self._tracking:
                self._tracking.count()
                self._track(branch, commit)
            return
        refused = [line for line in answer.output.splitlines() if line.startswith("!")]
        if not refused:
            raise RepositoryUnreadable(f"{redact(self._url)} cannot be pushed to: {answer.error}", _AWAY)
        reason = redact(refused[0].rpartition("\t")[2])
        if "checked out" in reason or "checked out" in answer.error:
            raise BranchCheckedOut(f"{branch}: {reason}", "check out another branch there")
        raise PushRejected(f"{branch}: {reason}", "read it again, and see the source's rules for pushes")

    def put(self, ref: str, commit: str) -> None:
        """Makes a ref of the source's point to `commit`, whatever it was. Raises RepositoryUnreadable."""
        answer = self._run(
            "push", "--progress", "--no-verify", "origin", f"+{commit}:{ref}", patience=self._settings.push
        )
        if answer.code != 0:
            raise RepositoryUnreadable(f"{redact(self._url)} does not take {ref}: {answer.error}", _AWAY)

    def _track(self, branch: str, commit: str | None) -> None:
        ref = self.tracks + branch
        move_ref(self._repository, ref, commit, self._repository.ref(ref))

    def _fetched(self, branches: list[str]) -> list[str | None]:
        """Where the branches stand, with their objects here."""
        answer = self._run("ls-remote", "origin", *(_HEADS + b for b in branches), patience=self._settings.ask)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{redact(self._url)} does not answer: {answer.error}", _AWAY)
        there = {ref: commit for commit, _, ref in (line.partition("\t") for line in answer.output.splitlines())}
        found = {branch: there.get(_HEADS + branch) for branch in branches}
        new = {b: commit for b, commit in found.items() if commit is not None and not self._held(b, commit)}
        return [*(found | self._brought(new)).values()] if new else [*found.values()]

    def _held(self, branch: str, commit: str) -> bool:
        """Whether that is where the branch was last. A commit that is merely there came with another, and need not be
        whole."""
        return self.tracked(branch) == commit and self._repository.has(commit)

    def _brought(self, new: Mapping[str, str]) -> dict[str, str | None]:
        """Fetches branches that are said to be at these commits. Where they are by now, with all their objects."""
        # By its id nobody has to be told afterwards at which commit a branch was.
        wanted = [_HEADS + branch for branch in new] if self._by_name else [*new.values()]
        quietly = [] if self._by_name else ["--no-write-fetch-head"]
        with incoming(self._repository.git_dir) as aside:
            answer = self._run(
                # The refs move later; whatever somebody has configured for `origin`, none moves here.
                *("fetch", "--progress", "--no-tags", "--refmap=", *quietly, "origin", *wanted),
                patience=self._settings.fetch,
                variables=aside.variables(new.values()),
            )
            if answer.code != 0:
                raise RepositoryUnreadable(f"{redact(self._url)} cannot be fetched: {answer.error}", _AWAY)
            aside.take()
            there = aside.branches() if self._by_name else new
        return {branch: there.get(branch) for branch in new}

    def _run(self, *arguments: str, patience: Patience, variables: Mapping[str, str] = _NONE) -> GitAnswer:
        asked = apart(self._url)
        settings = {
            "remote.origin.url": asked.url,
            **asked.settings,
            "gc.auto": "0",
            # Always as a pack: of objects one by one, a fetch that is ended leaves a commit without its trees.
            "fetch.unpackLimit": "1",
            "fetch.writeCommitGraph": "false",
            **gitvouch.SETTINGS,
            "maintenance.auto": "false",
            "credential.interactive": "false",
            "http.lowSpeedLimit": "1",
            "http.lowSpeedTime": str(self._settings.stall),
        }
        try:
            return git(
                self._repository.path,
                *arguments,
                settings=settings,
                variables={**self._ssh, **asked.variables, **variables},
                patience=patience,
                hurry=lambda: time.monotonic() > self._until,
            )
        except RepositoryUnreadable as error:
            raise RepositoryUnreadable(f"{redact(self._url)} does not answer: {error}", error.hint or _AWAY) from error

    @cached_property
    def _ssh(self) -> Mapping[str, str]:
        return ssh_with_deadlines(self._repository.path, self._settings.connect, self._settings.stall)


def ssh_with_deadlines(git_dir: Path, connect: int, stall: int) -> Mapping[str, str]:
    """Variables for ssh with deadlines (seconds) and without questions, where the user has not said how to run it."""
    if os.environ.keys() & {"GIT_SSH_COMMAND", "GIT_SSH"}:
        return {}
    if git(git_dir, "config", "--get", "core.sshCommand").output.strip():
        return {}
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": connect,
        "ServerAliveInterval": max(1, stall // 3),
        "ServerAliveCountMax": 3,
    }
    return {"GIT_SSH_COMMAND": " ".join(["ssh", *(f"-o {key}={value}" for key, value in options.items())])}

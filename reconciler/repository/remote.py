"""The source where it is a URL: fetched and pushed by the git command line, so that credentials, proxies and host keys
are the user's, where the server is told no others (access.py).

Called by mirror, from several threads and processes: a look at the source, a push of statuses and a push of writes may
be under way at a time, and none waits for another. What a look found before one of our own pushes is not news but the
past: it looks again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from apiserver import gitvouch
from apiserver.metrics.fleet import GIT, GIT_SECONDS
from apiserver.model.redaction import redact
from reconciler.repository import advice, hostkey
from reconciler.repository.access import NO_ACCESS, Reaching, RemoteAccess, scheme_of
from reconciler.repository.command import GitAnswer, Patience, git
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryUnreadable
from reconciler.repository.incoming import incoming
from reconciler.repository.objects import Repository
from reconciler.repository.shared import SharedLock
from reconciler.repository.ssh import SshSettings, ssh_variables
from reconciler.repository.write import move_ref

SOURCE = "origin"
_HEADS = "refs/heads/"
_NONE: Mapping[str, str] = MappingProxyType({})
_LOOKS = 5
"""How often a look that our own pushes overtook is taken again."""
_OPERATIONS = {"ls-remote": "look", "fetch": "fetch", "push": "push"}
"""What git's commands are called in metrics."""


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
        self,
        repository: Repository,
        url: str,
        settings: RemoteSettings = DEFAULT,
        access: RemoteAccess = NO_ACCESS,
        name: str = SOURCE,
    ) -> None:
        """`name`: by which its branches are tracked there; no two share one."""
        self._repository = repository
        self._url = url
        self._reaching = Reaching(url, access)
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
            raise self._failed("does not answer", answer)
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
            raise self._failed("does not answer", answer)
        return [line.partition("\t")[2] for line in answer.output.splitlines()]

    def named(self, refs: Iterable[str]) -> dict[str, str]:
        """Which of some refs, by their full names, the source has, and the commits that they lead to, whose objects
        need not be here. Raises RepositoryUnreadable."""
        wanted = {name: ref for ref in refs for name in (ref, f"{ref}^{{}}")}
        answer = self._run("ls-remote", "--", "origin", *wanted, patience=self._settings.ask)
        if answer.code != 0:
            raise self._failed("does not answer", answer)
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
            raise self._failed("cannot be pushed to", answer)
        reason = redact(refused[0].rpartition("\t")[2])
        if "checked out" in reason or "checked out" in answer.error:
            raise BranchCheckedOut(f"{branch}: {reason}", "check out another branch there")
        raise PushRejected(f"{branch}: {reason}", advice.refused(f"{reason}\n{answer.error}"))

    def put(self, ref: str, commit: str) -> None:
        """Makes a ref of the source's point to `commit`, whatever it was. Raises RepositoryUnreadable."""
        answer = self._run(
            "push", "--progress", "--no-verify", "origin", f"+{commit}:{ref}", patience=self._settings.push
        )
        if answer.code != 0:
            raise self._failed(f"does not take {ref}", answer)

    def _track(self, branch: str, commit: str | None) -> None:
        ref = self.tracks + branch
        move_ref(self._repository, ref, commit, self._repository.ref(ref))

    def _fetched(self, branches: list[str]) -> list[str | None]:
        """Where the branches stand, with their objects here."""
        answer = self._run("ls-remote", "origin", *(_HEADS + b for b in branches), patience=self._settings.ask)
        if answer.code != 0:
            raise self._failed("does not answer", answer)
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
                raise self._failed("cannot be fetched", answer)
            aside.take()
            there = aside.branches() if self._by_name else new
        return {branch: there.get(branch) for branch in new}

    def _run(self, *arguments: str, patience: Patience, variables: Mapping[str, str] = _NONE) -> GitAnswer:
        reached = self._reaching.bare()
        settings = {
            "remote.origin.url": reached.url,
            **reached.settings,
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
        self._reaching.key()
        operation, began, result = _OPERATIONS[arguments[0]], time.monotonic(), "failure"
        try:
            answer = git(
                self._repository.path,
                *arguments,
                settings=settings,
                variables={**self._ssh_variables, **reached.variables, **variables},
                patience=patience,
                hurry=lambda: time.monotonic() > self._until,
            )
            result = "success" if answer.code == 0 else "failure"
        except RepositoryUnreadable as error:
            raise RepositoryUnreadable(
                f"{redact(self._url)} does not answer: {error}", error.hint or advice.AWAY
            ) from error
        finally:
            GIT.add(operation, result)
            GIT_SECONDS.took(time.monotonic() - began, operation)
        return answer

    def _failed(self, what: str, answer: GitAnswer) -> RepositoryUnreadable:
        """`what`: did not come about."""
        is_ours = scheme_of(self._url) == "ssh" and self._ssh_variables
        if is_ours and hostkey.is_another(answer.error):
            return RepositoryUnreadable(
                f"{redact(self._url)} {what}: its host has another key than the one in {self._known_hosts}. Somebody "
                "may be in between",
                "ask its owner. Only if the key was replaced: take its old line out there (ssh-keygen -R)",
            )
        if is_ours and hostkey.is_unknown(answer.error):
            return self._unknown_host(what)
        return RepositoryUnreadable(f"{redact(self._url)} {what}: {answer.error}", advice.away(answer.error))

    def _unknown_host(self, what: str) -> RepositoryUnreadable:
        text = f"{redact(self._url)} {what}: the key of its host is not known"
        shown = hostkey.found(self._repository.path, self._url, self._ssh.command(), self._ssh.connect)
        if shown is None:
            return RepositoryUnreadable(text, f"add it to {self._known_hosts}, as its owner publishes it")
        return RepositoryUnreadable(
            f"{text}, which is {shown.fingerprint}",
            f"only if its owner publishes that very fingerprint, add this line to {self._known_hosts}: {shown.line}",
        )

    @property
    def _known_hosts(self) -> str:
        return str(self._ssh.known_hosts or "~/.ssh/known_hosts")

    @cached_property
    def _ssh(self) -> SshSettings:
        access = self._reaching.access
        bounds = self._settings
        return SshSettings(bounds.connect, bounds.stall, access.git_ssh_key_file, access.git_known_hosts_file)

    @cached_property
    def _ssh_variables(self) -> Mapping[str, str]:
        return ssh_variables(self._repository.path, self._ssh)

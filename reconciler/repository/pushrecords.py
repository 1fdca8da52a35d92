"""Who pushed which commits to the repository that the server hosts: a file for each push, named by the commit that it
brought the branch to.

Written by git's hook (apiserver/endpoints/pushhooks) before a push is taken, and by `treeplane up` where it makes the
repository; read by whoever asks who is behind a commit. Whoever may write into the repository may put anything here,
so what is no record counts for none. The author of a commit is anybody's text, and not asked.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from apiserver.endpoints.pushhooks import LONGEST_PUSHER, PUSHED
from reconciler.repository.plainfile import read_plain

KEPT = 10_000
"""Files of pushes that are kept: the newest."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_RECORD = re.compile(r"((?:[0-9a-f]{40,64})?)\n([^\n]+)\n(operator\n)?")
_LONGEST = LONGEST_PUSHER + 256


@dataclass(frozen=True, slots=True)
class PushRecord:
    """One push. `old`: where the branch was before it, "" where it began. `pusher`: the user, as User.as_json has it;
    no more is known of it than that it is an object. `operator`: no push at all, but who runs the server put the branch
    there."""

    old: str
    pusher: Mapping[str, Any]
    operator: bool = False


class PushRecords:
    """Of a repository that the server hosts; None: it hosts none, and there are none."""

    def __init__(self, git_dir: Path | None) -> None:
        self._directory = git_dir / PUSHED if git_dir is not None else None

    @property
    def are_kept(self) -> bool:
        """Whether pushes come through the server, which writes them down."""
        return self._directory is not None

    def of(self, commit: str) -> PushRecord | None:
        """The push that brought the branch to a commit; None where nobody knows of one, or what is there is no
        record."""
        if self._directory is None or not _COMMIT.fullmatch(commit):
            return None
        found = _RECORD.fullmatch(read_plain(self._directory / commit, _LONGEST))
        if found is None:
            return None
        old, line, operator = found.groups()
        try:
            pusher = orjson.loads(line)
        except ValueError:
            return None
        return PushRecord(old if old.strip("0") else "", pusher, bool(operator)) if isinstance(pusher, dict) else None

    def note(self, commit: str, old: str, pusher: Mapping[str, Any]) -> None:
        """Who runs the server, `pusher`, put the branch at a commit. Raises OSError."""
        if self._directory is not None:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = self._directory / f"{commit}.new"
            fresh.touch(mode=0o600)
            fresh.write_bytes(b"%b\n%b\noperator\n" % (old.encode(), orjson.dumps(dict(pusher))))
            fresh.replace(self._directory / commit)

    def sweep(self, most: int = KEPT) -> None:
        """Takes away all but the newest."""
        times: list[tuple[float, Path]] = []
        with contextlib.suppress(OSError):
            for file in self._directory.iterdir() if self._directory is not None else ():
                with contextlib.suppress(OSError):
                    times.append((file.lstat().st_mtime, file))
        for _, file in sorted(times)[: max(0, len(times) - most)]:
            with contextlib.suppress(OSError):
                file.unlink()


def covering(records: PushRecords, chain: Sequence[str], before: str = "") -> dict[str, PushRecord | None]:
    """By which push each commit came to the branch. `chain`: first parents, oldest first; `before`: the one that they
    go on from.

    A push from `old` to `new` covers `new` and what comes before it down to `old`; of two that cover a commit the later
    one counts, since without it the branch would not be there. Where `old` is nowhere in the chain it covers no commit
    that another push ends with: it may have brought less. One that ends before it begins was none, and covers nothing.
    """
    at = {commit: index for index, commit in enumerate(chain)}
    found: dict[str, PushRecord | None] = {}
    now: PushRecord | None = None
    for index in reversed(range(len(chain))):
        commit = chain[index]
        if now is not None and commit == now.old:
            now = None
        if now is None or (now.old not in at and now.old not in ("", before)):
            own = records.of(commit)
            now = own if own is not None and at.get(own.old, -1) < index else now
        found[commit] = now
    return {commit: found[commit] for commit in chain}

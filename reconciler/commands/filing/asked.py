"""What a command that writes files is told of where to write them, and what it did.

Shapes alone, made by the command line and by `desk`, told by `telling`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from reconciler.loading.changeset import ChangeKind


@dataclass(frozen=True, slots=True)
class FilingAsked:
    """`clone`: a clone of the fleet's repository, None: the one around the working directory, if that is one.
    `data_dir`: the server's, None: `.treeplane` where it is. `keys`: its keys/, None: the data directory's. `dry`:
    nothing is written. `folder`: of the repository, in which the fleet stands, "" as fleetfolder finds it."""

    clone: Path | None = None
    data_dir: Path | None = None
    keys: Path | None = None
    dry: bool = False
    folder: str = ""


class FiledFile(NamedTuple):
    """`where`: a path of the repository, `keys/…`, or a path of this machine; `data`: what stands there by now, None
    for a file that goes. `hidden`: it holds secrets as they are."""

    where: str
    change: ChangeKind
    data: bytes | None
    hidden: bool = False


@dataclass(slots=True)
class Filed:
    """`commit`: the one that was made, "" for none. `pushed`: where it was pushed to, "" where that is still to
    be done; `answer`: what the server said to the push. `notes`: what the user should know or do."""

    files: list[FiledFile]
    dry: bool = False
    commit: str = ""
    pushed: str = ""
    answer: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

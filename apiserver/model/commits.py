"""Which commit: the repository and the id, and the one place where its text is made and read.

    1f0c…                   forty digits: a commit of the fleet's own repository
    charts.1f0c…            of another repository, after its name

The text stands in records, annotations, on the status branch and on targets, so it fits wherever such things are kept:
a label's value, a file's name, a ref. Whoever reads it back may be lied to, and takes nothing else for a commit. Which
repositories there are is not known here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_DIGITS = 40
_LONGEST_NAME = 63 - _DIGITS - 1
"""A label's value has 63 characters."""
_ID = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_NAME = re.compile(rf"[a-z0-9](?:[-a-z0-9]{{0,{_LONGEST_NAME - 2}}}[a-z0-9])?")
_NO_OBJECT = "0" * _DIGITS
"""What git writes where there is none."""
_SHOWN = 80
_KEPT = 4096


class CommitRef(NamedTuple):
    """`repository`: its name, "" for the fleet's own. `id`: git's, "" for no commit at all (see NONE). False where it
    is none."""

    repository: str
    id: str

    def __bool__(self) -> bool:
        return self.id != ""

    def __str__(self) -> str:
        return f"{self.repository}.{self.id}" if self.repository else self.id

    def __format__(self, spec: str) -> str:
        """`{commit:.10}`: so many digits of the id, after the repository's name."""
        short = format(self.id, spec)
        return f"{self.repository}.{short}" if self.repository else short


NONE = CommitRef("", "")
"""No commit: one that never was, as a workspace has for a last good one that had none. Its text is empty."""


def own(commit: str) -> CommitRef:
    """The commit of the fleet's own repository with an id that git gave."""
    return CommitRef("", commit)


@lru_cache(_KEPT)
def parse(text: str) -> CommitRef:
    """The commit that a text names; NONE for an empty one. Raises ValueError for what `str` never writes."""
    if not text:
        return NONE
    name, dot, digits = text.rpartition(".")
    if _ID.fullmatch(digits) is None or digits == _NO_OBJECT:
        raise ValueError(_refusal(text, f"a commit's id has {_DIGITS} digits of 0-9 and a-f"))
    if dot and _NAME.fullmatch(name) is None:
        what = f"a repository's name has lower-case letters, digits and -, at most {_LONGEST_NAME}"
        raise ValueError(_refusal(text, what))
    return CommitRef(name, digits)


def shortened(text: str, digits: int) -> str:
    """The text of a commit with the first digits of its id, for people. What is none is cut as well."""
    name, dot, found = text.rpartition(".")
    return f"{name}{dot}{found[:digits]}"


def _refusal(text: str, hint: str) -> str:
    shown = ascii(text[:_SHOWN]) + ("…" if len(text) > _SHOWN else "")
    return f"{shown} names no commit: {hint}"

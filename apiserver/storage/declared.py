"""What a store keeps up beside its objects, because those who read it ask for it: declared when it is opened, by every
process that opens it, and the same by all of them.

Knows nothing of Kubernetes; what the fleet's stores declare is in apiserver/stores.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from apiserver.model.keys import Key
from apiserver.model.tables import row_key

LONGEST_TERM: Final = 1_024
"""Bytes (UTF-8) of a term."""


@dataclass(frozen=True, slots=True)
class Index:
    """Finds objects by terms that follow from their key and bytes.

    `terms` is a pure function. What it says of bytes that it cannot read (it raises), and what is no term (empty, with
    a NUL, longer than LONGEST_TERM), counts as nothing, since tenants write the bytes. `version` changes with it: an
    index of another version is built anew when the store is opened. `resources`: names without their identities, None
    for all but Treeplane's own. `hint`: bytes that each object which has a term contains; whoever lacks them is not
    read, and costs a search of its bytes. `counted`: how many objects have a term is kept, too (`View.tally`).
    `by_form`: whether an object has terms does not depend on which texts its strings say, so one of those that say the
    same but for some texts (templates.py) tells of all.
    """

    name: str
    version: int
    terms: Callable[[Key, bytes], Iterable[str]]
    hint: bytes = b""
    resources: frozenset[str] | None = None
    counted: bool = False
    by_form: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """`marked`: resources whose last change `View.marked` tells."""

    indexes: tuple[Index, ...] = ()
    marked: frozenset[str] = frozenset()


class IndexEntry(NamedTuple):
    """One object under one of its terms."""

    term: str
    key: Key


class Indexes:
    """Those of one store. An entry is a row of a table of the index's own: its term, then its key, and no value."""

    def __init__(self, declared: Sequence[Index]) -> None:
        self.declared = {index.name: index for index in declared}
        if len(self.declared) != len(declared):
            raise ValueError("two indexes have one name")
        self._of: dict[str, tuple[Index, ...]] = {}

    def of(self, resource: str) -> tuple[Index, ...]:
        """The indexes that may have objects of a resource."""
        found = self._of.get(resource)
        if found is None:
            found = self._of[resource] = tuple(i for i in self.declared.values() if covers(i, resource))
        return found

    def table(self, index: Index) -> str:
        """Raises LookupError for an index that the store does not keep."""
        if self.declared.get(index.name) != index:
            raise LookupError(f"the store was opened without the index {index.name} of version {index.version}")
        return table(index.name)

    def tallies(self, index: Index) -> str:
        """The table of how many objects have each term. Raises LookupError for an index that is not counted."""
        self.table(index)
        if not index.counted:
            raise LookupError(f"the index {index.name} is not counted")
        return tallies(index.name)


def table(name: str) -> str:
    """What the rows of an index stand under."""
    return f"index {name}"


def tallies(name: str) -> str:
    """What the numbers of an index stand under: a row for each of its terms."""
    return f"tally {name}"


def entries(index: Index, key: Key, value: bytes | None) -> set[str]:
    """The rows that an object with this value (None: there is none) has in an index."""
    if value is None or index.hint not in value:
        return set()
    try:
        return {row_key(term, *key) for term in index.terms(key, value) if _is_term(term)}
    except Exception:  # whatever stands in those bytes, the object has to be written
        return set()


def entry(row: str) -> IndexEntry:
    """What a row says."""
    term, *key = row.split("\0")
    return IndexEntry(term, Key(*key))


def row_of(found: IndexEntry) -> str:
    """The row that says so."""
    return row_key(found.term, *found.key)


def begin_of(begin: str, whole: bool) -> str:
    """What rows begin with whose term begins so, or (`whole`) is that and no more."""
    return begin + "\0" if whole else begin


def covers(index: Index, resource: str) -> bool:
    """Whether objects of a resource may have terms of an index."""
    if index.resources is None:
        return not resource.startswith("~")
    return resource.partition(":")[0] in index.resources


def _is_term(term: str) -> bool:
    if not term or "\0" in term:
        return False
    try:
        return len(term.encode()) <= LONGEST_TERM
    except UnicodeEncodeError:
        return False

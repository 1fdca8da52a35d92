"""A list read in pages of the store, all at one revision, each page one short read.

Called by reads.py. Between two pages other requests may be answered: no snapshot is held, the store's log tells how
things were. What a client asked for (a limit, a continue token, selectors) is settled here; how it is written out is
not.
"""

from __future__ import annotations

from apiserver.endpoints import continuation
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.continuation import LATEST, Continuation
from apiserver.endpoints.options import ListOptions, too_new
from apiserver.endpoints.selection import Selection
from apiserver.endpoints.sight import ScanPart
from apiserver.endpoints.views import KindView
from apiserver.model.errors import expired
from apiserver.model.keys import Key
from apiserver.storage.protocol import Compacted, Page, Record

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Listing:
    """`next` until `done`. `revision`, `token` and `remaining` are the list's: the first is known after the first page,
    the others when it is done. `remaining`: objects behind the list, None if unknown or none."""

    def __init__(self, asking: Asking, options: ListOptions, selection: Selection, view: KindView) -> None:
        """Raises StatusError 400, 504."""
        self._asking = asking
        self._selection = selection
        self._view = view
        self._sifts = bool(selection) or view.mixed
        self._left = options.limit
        self._namespace = _namespace(asking, selection)
        self._continued: Continuation | None = None
        self._at: int | None = options.revision if options.exact else None
        self._after: Key | None = None
        self._behind: int | None = None
        if options.token:
            found = continuation.decode(options.token, asking.kind.storage, asking.world.cluster, asking.namespace)
            self._continued, self._after, self._behind = found, found.after, found.left
            self._at = None if found.revision == LATEST else found.revision
        self.revision = 0
        self.token = ""
        self.remaining: int | None = None
        self.done = False
        current = asking.world.realm.store.revision()
        newest = max(self._at or 0, options.revision or 0)
        if newest > current:
            raise too_new(newest, current)

    def next(self, size: int) -> list[Record]:
        """The matches among the next `size` objects. Raises StatusError 410 if the log does not reach back."""
        key = self._single()
        if key is not None:
            return self._lookup(key)
        limit = size if self._left is None or self._sifts else min(size, self._left)
        page = self._scan(limit)
        if self._view.kind.conversion is not None:
            self._view.prepare(record.value for record in page.records)
        self.revision = self._at = page.revision
        self._after = page.more
        if not self._sifts:
            if self._left is not None:
                self._left -= len(page.records)
                self._behind = page.remaining if self._behind is None else max(0, self._behind - len(page.records))
            if page.more is None or self._left == 0:
                self._end(page.more, self._behind)
            return page.records
        found = [record for record in page.records if matches(self._selection, self._view, record)]
        if self._left is not None and len(found) >= self._left:
            found = found[: self._left]
            last = bool(found) and page.more is None and found[-1] is page.records[-1]
            self._end(None if last else found[-1].key, None)
            return found
        if self._left is not None:
            self._left -= len(found)
        if page.more is None:
            self._end(None, None)
        return found

    def _end(self, after: Key | None, behind: int | None) -> None:
        self.done = True
        if after is not None:
            self.remaining = behind or None
            self.token = self._encoded(Continuation(self.revision, after, behind))

    def _encoded(self, found: Continuation) -> str:
        return continuation.encode(found, self._asking.world.cluster, self._asking.namespace)

    def _scan(self, limit: int) -> Page:
        asking = self._asking
        counted = self._behind is None and not self._sifts and self._left is not None
        try:
            return asking.scan(ScanPart(self._namespace, self._after, limit, self._at), count=counted)
        except Compacted:
            token = self._continued
            if token is None:
                raise expired("The resourceVersion for the provided list is too old.") from None
            raise expired(_EXPIRED, self._encoded(Continuation(LATEST, token.after, None))) from None

    def _single(self) -> Key | None:
        """The one key that can match, if a selector names it: `kubectl get -w NAME`, `kubectl wait`."""
        asking, name = self._asking, self._selection.name
        if name is None or asking.world.cluster is None or self._at is not None or self._after is not None:
            return None
        if asking.kind.namespaced and self._namespace is None:
            return None
        return Key(asking.kind.storage, asking.world.cluster, self._namespace or "", name)

    def _lookup(self, key: Key) -> list[Record]:
        store = self._asking.world.realm.store
        self.done, self.revision = True, store.revision()
        record = store.get(key)
        if record is None:
            return []
        self.revision = max(self.revision, record.revision)
        return [record] if matches(self._selection, self._view, record) else []


def _namespace(asking: Asking, selection: Selection) -> str | None:
    """Where to look: a field selector may narrow it down."""
    namespace = asking.namespace
    if namespace is None and selection.namespace and asking.kind.namespaced and asking.world.cluster is not None:
        return selection.namespace
    return namespace


def matches(selection: Selection, view: KindView, record: Record) -> bool:
    """Decodes the object only if neither its key nor its bytes decide."""
    if not selection.key_matches(record.key) or not view.shows(record.key, record.value):
        return False
    if not selection.needs_object:
        return True
    return selection.may_match(record.value) and selection.object_matches(
        view.decoded(record.key, record.value, record.revision)
    )

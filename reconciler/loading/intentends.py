"""How intents end that no commit carries out: refused, given back, written to the store alone, dropped.

Called by the committer. Each is ended by compare-and-swap, so one that was withdrawn meanwhile is answered by nobody.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from apiserver.model.errors import StatusError
from apiserver.registry.intents import AGAIN, DONE, KEPT, Intent, intent_key, refused
from apiserver.storage.protocol import Check, Conflict, Delete, Op, Put, Store

log = logging.getLogger(__name__)


class IntentEnds:
    """Not thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def standing(self, intents: Sequence[Intent]) -> list[Intent]:
        """Those that wait still: they were neither answered nor withdrawn."""
        found = self._store.get_many([intent_key(intent.key) for intent in intents])
        there = zip(intents, found, strict=True)
        return [each for each, record in there if record is not None and record.revision == each.revision]

    def refuse(self, intents: Iterable[Intent], error: StatusError) -> None:
        for intent in intents:
            self.answer(intent, refused(error))
            if not intent.deadline:
                log.warning("%s of %s could not be committed: %s", intent.verb, intent.key, error)

    def answer(self, intent: Intent, answer: dict[str, object]) -> None:
        self._write(Check(intent_key(intent.key), intent.revision), *intent.answered(answer))

    def drop(self, intent: Intent) -> None:
        """Of one that nobody waits for any more."""
        self._write(Delete(intent_key(intent.key), intent.revision))

    def aside(self, intent: Intent) -> None:
        """Writes what changes no file."""
        expect = intent.base
        op: Op = Delete(intent.key, expect) if intent.value is None else Put(intent.key, intent.value, expect)
        nothing = intent.value is None and self._store.get(intent.key) is None
        ops = intent.answered(KEPT) if nothing else [op, *intent.answered(DONE), *intent.also]
        try:
            self._store.write(*ops).result()
        except Conflict:
            self.answer(intent, AGAIN)

    def unwritten(self, intents: Sequence[Intent], unread: StatusError) -> None:
        """Answers those that their commit left as they were. `unread`: why it may have, where nothing else tells."""
        for intent in self.standing(intents):
            live = self._store.get(intent.key)
            if live is None and intent.value is None:
                self.answer(intent, KEPT)  # it went with what it stood for
            elif (live.revision if live is not None else 0) != intent.base:
                self.answer(intent, AGAIN)  # e.g. a controller's finalizer came first, and it waits for that now
            else:
                self.refuse([intent], unread)

    def _write(self, *ops: Op) -> None:
        try:
            self._store.write(*ops).result()
        except Conflict:
            log.debug("whoever waited has given up")

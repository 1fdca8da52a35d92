"""A store in memory that counts what it is asked."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from apiserver.model.keys import Key
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Page, Record, View
from apiserver.stores import DECLARED


class CountingStore(MemoryStore):
    """What is declared is what the fleet's stores declare. Its views move on, so that they count too."""

    def __init__(self) -> None:
        super().__init__(declared=DECLARED)
        self.scans = 0

    def view(self) -> AbstractContextManager[View]:
        return nullcontext(self)

    def scan(self, *where: str | None, **more: Any) -> Page:  # type: ignore[override]
        self.scans += 1
        return super().scan(*where, **more)  # type: ignore[arg-type]

    @property
    def data(self) -> dict[Key, Record]:
        """All objects."""
        return {r.key: r for resource in self.resources() for r in super(CountingStore, self).scan(resource).records}

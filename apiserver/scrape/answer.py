"""The text of a scrape. The way into this room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

from apiserver.metrics import pending
from apiserver.metrics.definition import Labels, Metric
from apiserver.scrape import fleet, machine
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Store, View

_Sample = tuple[Metric, Labels, float]


def scraped(store: Store, settings: ServerSettings) -> tuple[bytes, bytes]:
    """The answer's type and its text. It takes milliseconds: for a thread."""
    from apiserver.metrics import library  # noqa: PLC0415 - a worker that nobody scrapes starts without it

    pending.flush()
    with store.view() as view:
        return library.CONTENT_TYPE, library.text([*_read(view, settings)])


def _read(view: View, settings: ServerSettings) -> Iterator[_Sample]:
    return chain(fleet.read(view), machine.read(view, settings, time.time()))

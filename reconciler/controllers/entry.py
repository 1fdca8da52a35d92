"""What a controller is told: an entry of the log, or an object that is there. Made by a feed, once for all who ask."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.storage.protocol import Change, Record

Object = dict[str, Any]


def decode(value: bytes) -> Object:
    found: Object = orjson.loads(value)
    return found


class Entry:
    """One entry of the log; or, `shown`, an object that is there. `value` None: deleted; `previous` None: created, or
    shown. `with_workspace`: it is certain that its workspace went with all that was in it, at once or soon after, so
    what concerns that workspace alone needs no look. Read and decoded when somebody asks, once for all who do, so
    nobody may change what `obj` and `before` give."""

    __slots__ = ("_before", "_news", "_obj", "key", "revision", "shown", "with_workspace")

    def __init__(self, news: Change | Record, *, with_workspace: bool = False) -> None:
        self._news, self.key, self.revision = news, news.key, news.revision
        self.shown, self.with_workspace = isinstance(news, Record), with_workspace
        self._obj: Object | None = None
        self._before: Object | None = None

    @property
    def value(self) -> bytes | None:
        return self._news.value

    @property
    def previous(self) -> bytes | None:
        return self._news.previous if isinstance(self._news, Change) else None

    @property
    def obj(self) -> Object:
        """The object as it is from here on; {} where it was deleted."""
        if self._obj is None:
            self._obj = decode(self.value) if self.value is not None else {}
        return self._obj

    @property
    def before(self) -> Object:
        """The object as it was; {} where there was none."""
        if self._before is None:
            self._before = decode(self.previous) if self.previous is not None else {}
        return self._before

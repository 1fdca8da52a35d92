"""When each sync target last answered, in memory: a heartbeat is not worth a write, a change of state is.

Written by the heartbeat threads, read by the placements controller. Counted from the start of the process at the
earliest, so a reconciler that was away for an hour does not take every target for dead. A silence may begin and end
within one slow answer: no status tells of it, so those who decide on what they saw meanwhile are told of its end here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.model.conditions import NOT_ASKED
from apiserver.model.keys import Key
from reconciler.plan.placement import Seen, Sight


@dataclass(slots=True)
class _Pulse:
    """`since`: when it was last known not to be silent, None before the first time. `shut`: reason and text."""

    since: float | None = None
    answered: bool = False
    shut: tuple[str, str] | None = None
    trouble: str = NOT_ASKED


class Heartbeats:
    """`threshold`: seconds without an answer after which a target counts as silent."""

    def __init__(self, threshold: float = 60.0) -> None:
        self._threshold = threshold
        self._start = time.monotonic()
        self._pulses: dict[str, _Pulse] = {}
        self._lock = threading.Lock()
        self._told: list[Callable[[Key], None]] = []

    def answered(self, key: str) -> bool:
        """Whether it was silent before."""
        was = self.seen(key).sight
        with self._lock:
            self._pulses[key] = _Pulse(time.monotonic(), answered=True, trouble="")
        return was is Sight.SILENT

    def on_return(self, told: Callable[[Key], None]) -> None:
        """`told` is called by a heartbeat thread with the place of a target that answers after it was silent."""
        self._told.append(told)

    def returned(self, place: Key) -> None:
        for told in self._told:
            told(place)

    def failed(self, key: str, trouble: str) -> None:
        """`trouble`: why it did not answer. The first reason since its last answer stands: a text that changes with
        every attempt would be written with every attempt."""
        with self._lock:
            pulse = self._pulses.setdefault(key, _Pulse())
            if pulse.trouble in ("", NOT_ASKED):
                pulse.trouble = trouble
            pulse.shut = None

    def shut(self, key: str, reason: str, why: str) -> None:
        """There is no way in, which is not silence: that is counted from when there was one again."""
        with self._lock:
            self._pulses[key] = _Pulse(time.monotonic(), shut=(reason, why))

    def forget(self, key: str) -> None:
        with self._lock:
            self._pulses.pop(key, None)

    def seen(self, key: str) -> Seen:
        with self._lock:
            pulse = self._pulses.get(key, _Pulse())
            if pulse.shut is not None:
                reason, why = pulse.shut
                return Seen(Sight.SHUT, 0.0, why, reason)
            silent = time.monotonic() - (self._start if pulse.since is None else pulse.since)
            if silent >= self._threshold:
                return Seen(Sight.SILENT, silent, pulse.trouble)
            if not pulse.answered:
                return Seen(Sight.UNKNOWN, silent, pulse.trouble)
            return Seen(Sight.ANSWERS, silent, "")

    def never_asked(self, key: str) -> bool:
        """Whether nothing at all is known yet, so that what is recorded about it stands."""
        with self._lock:
            return key not in self._pulses

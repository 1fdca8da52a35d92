"""Many short names in little memory: the logical clusters that a load has to record again are as many as it brings.

Filled while files are rendered (render.py), kept by the writer from one status commit to the next (unsettled.py).
"""

from __future__ import annotations

from collections.abc import Iterator


class Names:
    """In the order in which they were added, some perhaps several times. No name has a line's end in it."""

    def __init__(self) -> None:
        self._packed = bytearray()
        self._last = ""

    def add(self, name: str) -> None:
        """The name that was added last counts once."""
        if name != self._last:
            self._last = name
            self._packed += name.encode() + b"\n"

    def update(self, names: Names) -> None:
        self._packed += names._packed
        self._last = ""

    def copy(self) -> Names:
        made = Names()
        made.update(self)
        return made

    def clear(self) -> None:
        self._packed, self._last = bytearray(), ""

    def __bool__(self) -> bool:
        return bool(self._packed)

    def __iter__(self) -> Iterator[str]:
        begin = 0
        while (end := self._packed.find(b"\n", begin)) >= 0:
            yield self._packed[begin:end].decode()
            begin = end + 1

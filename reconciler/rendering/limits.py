"""What the kernel lets one rendering take, as limits of its process.

Used by both sandboxes. There is one process and no other, so what it may take is what the rendering may.
"""

from __future__ import annotations

import math
import resource

from reconciler.rendering.settings import RenderingBounds

_RESERVED = 1 << 30
"""Bytes of addresses that programs written in Go ask for without using them, with room to spare."""


def limits_of(bounds: RenderingBounds) -> dict[int, tuple[int, int]]:
    """By resource: the soft limit and the hard one. `memory` counts what a program has to itself and may write to; all
    addresses together are bounded besides, for what is counted elsewhere. No file is written, not even an empty one
    grown."""
    seconds = math.ceil(bounds.seconds)
    wanted = {
        resource.RLIMIT_DATA: bounds.memory,
        resource.RLIMIT_AS: bounds.memory + _RESERVED,
        resource.RLIMIT_CPU: seconds + 1,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    return {number: _within(number, most) for number, most in wanted.items()}


def grants(bounds: RenderingBounds) -> bool:
    """Whether a rendering gets all the memory that it may have: this process may have less itself."""
    return limits_of(bounds)[resource.RLIMIT_DATA][0] == bounds.memory


def _within(number: int, most: int) -> tuple[int, int]:
    """No more than this process may have itself: nobody may raise that."""
    _, hard = resource.getrlimit(number)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    return least, least

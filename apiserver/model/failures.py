"""Unexpected errors as logs may show them: what kind, and where in the program. Never their text.

The text of an error quotes what was at hand (`could not convert string to float: 's3cret'`), and what is at hand here
are people's Secrets and tokens. Kind and place are enough to find the fault. Used wherever an error is caught
that nobody expected.
"""

from __future__ import annotations

import traceback


def described(error: BaseException) -> str:
    """The error and those that it came from, the first cause first, each with its stack. Several lines."""
    chain: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in chain:
        chain.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return "\nthen:\n".join(_one(link) for link in reversed(chain))


def _one(error: BaseException) -> str:
    return "".join([*traceback.format_tb(error.__traceback__), type(error).__qualname__])

"""How asking a forge fails. Raised in this room, told by the commands."""

from __future__ import annotations


class ForgeError(Exception):
    """`text` says what and where, `hint` what to do. Neither has a token in it."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


class NotSaid(ForgeError):
    """Who called did not say what is needed, or said what cannot be: nothing was asked."""


class MaybeDone(ForgeError):
    """Whether something was made is not known: the forge took the request and did not say what became of it."""

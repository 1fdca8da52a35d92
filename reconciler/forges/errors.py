"""How asking a forge fails. Raised in this room, told by the commands."""

from __future__ import annotations


class ForgeError(Exception):
    """`text` says what and where, `hint` what to do. Neither has a token in it. `status`: of the answer, 0 where there
    was none; `after`: seconds that the other side asks for before it is asked again, 0 where it does not say."""

    def __init__(self, text: str, hint: str = "", *, status: int = 0, after: float = 0.0) -> None:
        super().__init__(text)
        self.text, self.hint, self.status, self.after = text, hint, status, after


class NotSaid(ForgeError):
    """Who called did not say what is needed, or said what cannot be: nothing was asked."""


class MaybeDone(ForgeError):
    """Whether something was made is not known: the forge took the request and did not say what became of it."""

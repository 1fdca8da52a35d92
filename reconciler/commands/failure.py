"""How a command ends badly: a message with what to do, and an exit code (1 differences, 2 usage, >2 anything else)."""

from __future__ import annotations

import click

USAGE = 2
BROKEN = 3
BUSY = 4


class Failure(click.ClickException):
    """`text` says what and where, `hint` what to do."""

    def __init__(self, text: str, hint: str = "", code: int = BROKEN) -> None:
        super().__init__(f"{text}\n{hint}" if hint else text)
        vars(self)["exit_code"] = code

"""`-o`, the same for every command that tells data: table, json, yaml, and what else one has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

TEXT = "text"
"""What commands are given for a table; it may be typed, too."""
_TABLE = "table"


class OutputForm(click.Choice[str]):
    """One of `forms`, of which the one for people is typed as table."""

    def __init__(self, forms: Iterable[str]) -> None:
        super().__init__([_TABLE if form == TEXT else form for form in forms])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == TEXT:
            return TEXT
        found = super().convert(value, param, ctx)
        return TEXT if found == _TABLE else found


def output(forms: Iterable[str] = (TEXT, "json", "yaml")) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--output", "-o", type=OutputForm(forms), default=_TABLE, show_default=True, help="The form.")

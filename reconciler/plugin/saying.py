"""What a plugin prints. Much of it others wrote, in other workspaces: none of it does anything to a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from reconciler.plugin import yamltext

FORMS = ("table", "json", "yaml")


def say(text: str) -> None:
    """At once, since what follows may take its time."""
    print(shown(text), flush=True)  # noqa: T201


def warn(text: str) -> None:
    """Beside the output."""
    print(shown(text), file=sys.stderr)  # noqa: T201


def saying(form: str) -> Callable[[str], None]:
    """Where words go that are not what was asked for: into the output of a table, beside data."""
    return say if form == "table" else warn


def tell(data: Any, form: str) -> None:
    """Data, in one of FORMS but the table, which whoever has the data makes."""
    text = json.dumps(data, indent=2) if form == "json" else yamltext.written(data).removesuffix("\n")
    print(text, flush=True)  # noqa: T201 - neither leaves anything in it that a terminal would obey


def shown(text: str) -> str:
    """Lines stay lines; what cannot be seen is spelled."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )

"""The tables of docs/settings.md, made of the settings: `python -m reconciler.commands.settingspage docs/settings.md`
writes them anew (`make settings`), and a test compares. What stands before and after them is written by hand.
"""

from __future__ import annotations

import sys
from dataclasses import Field
from inspect import getdoc
from pathlib import Path
from typing import Any

from apiserver.options import Option
from apiserver.options import options as options_of
from reconciler.commands.forms import FORMS
from reconciler.commands.options import TREES, groups, name_of

_BEGIN, _END = "<!-- made of the settings by `make settings` -->", "<!-- end -->"


def page(text: str, *trees: type) -> str:
    """`text` with the tables of the trees' options between the two marks. Raises ValueError without marks."""
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"there is no {_BEGIN} with {_END} below it")
    tables = [_table(group) for tree in trees for group in groups(tree).values()]
    return f"{before}{begin}\n\n{''.join(tables)}{end}{after}"


def _table(group: type) -> str:
    rows = [_row(field, told) for field, _, told in options_of(group) if not told.hidden]
    head = ["| option | default | what it does |", "|---|---|---|"]
    heading = f"## {(getdoc(group) or '').removesuffix('.')}"
    return "\n".join([heading, "", *head, *rows, "", ""]) if rows else ""


def _row(field: Field[Any], told: Option) -> str:
    said = (told.document or told.help).replace("{choices}", ", ".join(FORMS[told.form].choices))
    return " | ".join([f"| `{name_of(field, told)}`", told.shown or _shown(field.default, told.unit), f"{said} |"])


def _shown(default: Any, unit: str) -> str:
    match default:
        case bool():
            return "on" if default else "off"
        case int() | float():
            return f"{default:g} {unit}".strip()
        case str() if default:
            return f"`{default}`"
    return ""


def main(file: str) -> None:
    at = Path(file)
    at.write_text(page(at.read_text(), *TREES))


if __name__ == "__main__":
    main(*sys.argv[1:])

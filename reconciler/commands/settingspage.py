"""The tables of docs/settings.md, made of the settings: `python -m reconciler.commands.settingspage docs/settings.md`
writes them anew (`make settings`), and a test compares. What stands before and after them is written by hand.
"""

from __future__ import annotations

from dataclasses import Field
from inspect import getdoc
from typing import Any

from apiserver.options import Option
from apiserver.options import options as options_of
from reconciler.commands import madepage
from reconciler.commands.forms import FORMS
from reconciler.commands.options import TREES, groups, name_of


def page(text: str) -> str:
    """`text` with the tables of all options between its marks."""
    return madepage.between(text, "settings", (_table(group) for tree in TREES for group in groups(tree).values()))


def _table(group: type) -> str:
    rows = [_row(field, told) for field, _, told in options_of(group) if not told.hidden]
    table = madepage.table(("option", "default", "what it does"), rows)
    heading = f"## {(getdoc(group) or '').removesuffix('.')}"
    return "\n".join([heading, "", *table, "", ""]) if rows else ""


def _row(field: Field[Any], told: Option) -> tuple[str, str, str]:
    said = (told.document or told.help).replace("{choices}", ", ".join(FORMS[told.form].choices))
    return f"`{name_of(field, told)}`", told.shown or _shown(field.default, told.unit), said


def _shown(default: Any, unit: str) -> str:
    match default:
        case bool():
            return "on" if default else "off"
        case int() | float():
            return f"{default:g} {unit}".strip()
        case str() if default:
            return f"`{default}`"
    return ""


if __name__ == "__main__":
    madepage.write(page)

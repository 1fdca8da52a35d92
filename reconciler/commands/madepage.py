"""Pages of docs/ with a part that is made of the source, between two marks; what stands before and after them is
written by hand. The modules whose names end in `page` say what is made, and are run by `make settings`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

_END = "<!-- end -->"
_CODE = re.compile(r"(`[^`]*`)")


def between(text: str, of: str, made: Iterable[str]) -> str:
    """`text` with the sections that are made of `of` between its two marks. Raises ValueError without marks."""
    mark = f"<!-- made of the {of} by `make settings` -->"
    before, begin, rest = text.partition(mark)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"there is no {mark} with {_END} below it")
    return f"{before}{begin}\n\n{''.join(made)}{end}{after}"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """The lines of one; [] without rows."""
    lines = [_row(each) for each in rows]
    names = list(heads)
    return [_row(names), f"|{'---|' * len(names)}", *lines] if lines else []


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """As Markdown: what looks like HTML is none, but for what is shown as code, which stands as it is."""
    parts = _CODE.split(" ".join(text.split()).replace("|", "\\|"))
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def write(page: Callable[[str], str]) -> None:
    """What such a module does when it is run with the page's file."""
    at = Path(sys.argv[1])
    at.write_text(page(at.read_text()))

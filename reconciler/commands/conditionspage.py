"""The tables of docs/conditions.md, made of what the entries of kinds say and of docs/troubleshooting.md, which has a
paragraph for every reason: `python -m reconciler.commands.conditionspage docs/conditions.md` writes them anew (`make
settings`), and a test compares. What stands before them is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.conditiontypes import ConditionType
from apiserver.registry.builtins.entry import BuiltinKind
from reconciler.commands import madepage

TROUBLESHOOTING = "troubleshooting.md"

_ROW = re.compile(
    r"\| (?P<reasons>(?:`[A-Z]\w+`(?:, )?)+) \| (?P<conditions>[^|]*`[^|]*) \| (?P<meaning>[^|]*) \|[^|]*\|"
)
_NAME = re.compile(r"`(\w+)`")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


class ReasonParagraph(NamedTuple):
    """What a row of docs/troubleshooting.md says of reasons of conditions."""

    reasons: frozenset[str]
    conditions: frozenset[str]
    meaning: str
    anchor: str


def paragraphs(troubleshooting: str) -> list[ReasonParagraph]:
    found: list[ReasonParagraph] = []
    anchor = ""
    for line in troubleshooting.splitlines():
        if line.startswith("## "):
            anchor = _NOT_IN_ANCHORS.sub("", line[3:].lower()).replace(" ", "-")
        row = _ROW.fullmatch(line)
        if row is not None:
            reasons, conditions = (frozenset(_NAME.findall(row[name])) for name in ("reasons", "conditions"))
            found.append(ReasonParagraph(reasons, conditions, row["meaning"], anchor))
    return found


def kinds() -> list[BuiltinKind]:
    """Those with conditions, by name."""
    return sorted((entry for entry in ENTRIES.values() if entry.conditions), key=lambda entry: entry.kind)


def page(text: str, troubleshooting: str) -> str:
    """`text` with the tables between its marks."""
    known = paragraphs(troubleshooting)
    made = (line for entry in kinds() for line in _section(entry, known))
    return madepage.between(text, "kinds' entries", (f"{line}\n" for line in made))


def paragraph_of(
    entry: BuiltinKind, about: ConditionType, reason: str, known: Sequence[ReasonParagraph]
) -> ReasonParagraph | None:
    """The one that names this condition with that reason; else the one that names another of the kind's."""
    others = {each.type for each in entry.conditions if reason in each.amiss}
    there = [each for each in known if reason in each.reasons]
    named = [each for each in there if about.type in each.conditions]
    return next(iter(named or [each for each in there if each.conditions & others]), None)


def _section(entry: BuiltinKind, known: Sequence[ReasonParagraph]) -> Iterator[str]:
    yield from (f"## {entry.kind}", "", f"Group `{entry.group}`." if entry.group else "Of the core group.", "")
    rows = [row for about in entry.conditions for row in _rows(entry, about, known)]
    yield from (*madepage.table(("condition", "reason", "what it means"), rows), "")


def _rows(entry: BuiltinKind, about: ConditionType, known: Sequence[ReasonParagraph]) -> Iterator[tuple[str, str, str]]:
    yield f"`{about.type}`", ", ".join(f"`{reason}`" for reason in about.usual), f"**{about.says}**"
    same = next((each.type for each in entry.conditions if each.amiss == about.amiss), about.type)
    if about.amiss and same != about.type:
        yield "", f"those of `{same}`", "the same"
    else:
        for reason in about.amiss:
            found = paragraph_of(entry, about, reason, known)
            if found is None:
                raise ValueError(f"{TROUBLESHOOTING} has no row for {reason} of {about.type} ({entry.kind})")
            yield "", f"[`{reason}`]({TROUBLESHOOTING}#{found.anchor})", found.meaning


def _beside(text: str) -> str:
    return page(text, Path(sys.argv[1]).with_name(TROUBLESHOOTING).read_text())


if __name__ == "__main__":
    madepage.write(_beside)

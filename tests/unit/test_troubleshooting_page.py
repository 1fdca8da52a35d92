"""docs/troubleshooting.md has a paragraph for every reason that a condition can have where something is not well, and
for every exit code. The reasons are read from the program's own source, so that a new one fails here until it stands
on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.reasons import reasons

from reconciler.commands.conditionspage import kinds

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
WELL = {reason for entry in kinds() for about in entry.conditions for reason in about.usual}
"""What no page has to explain."""


def test_every_reason_has_its_paragraph() -> None:
    found = reasons()
    assert len({each.word for each in found}) > 60  # the reading itself works
    missing = sorted({f"{r.word} ({r.where})" for r in found if r.word not in WELL and f"`{r.word}`" not in PAGE})
    assert not missing, "docs/troubleshooting.md has no paragraph for: " + ", ".join(missing)


def test_the_page_names_no_reason_that_there_is_none_of() -> None:
    known = {each.word for each in reasons()}
    rows = re.findall(r"^\| ((?:`[A-Z]\w+`(?:, )?)+) \|", PAGE.split("## kubectl says")[0], re.MULTILINE)
    named = {word for row in rows for word in re.findall(r"`(\w+)`", row)}
    assert named - known == set()


@pytest.mark.parametrize("code", ["1", "2", "3", "4", "130"])
def test_every_exit_code_has_its_paragraph(code: str) -> None:
    """Those of docs/commands.md, which is held to the program."""
    listed = re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    assert code in listed
    assert set(listed) - {"0"} == set(re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE))

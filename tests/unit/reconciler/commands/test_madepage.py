"""The part of a page that is made of the source: found by its marks, and safe as Markdown."""

from __future__ import annotations

import pytest

from reconciler.commands import madepage

MARK = "<!-- made of the cups by `make settings` -->"


def test_only_what_is_between_the_marks_is_made() -> None:
    text = f"before\n{MARK}\nold\n<!-- end -->\nafter\n"
    made = madepage.between(text, "cups", ["new\n"])
    assert made == f"before\n{MARK}\n\nnew\n<!-- end -->\nafter\n"
    assert madepage.between(made, "cups", ["new\n"]) == made


@pytest.mark.parametrize("text", ["", MARK, "<!-- end -->", f"<!-- end --> {MARK}"])
def test_a_page_without_marks_is_an_error_that_names_them(text: str) -> None:
    with pytest.raises(ValueError, match="there is no <!-- made of the cups"):
        madepage.between(text, "cups", [])


def test_a_table_without_rows_is_none() -> None:
    assert madepage.table(["a"], []) == []


def test_cells_are_one_line_and_nothing_in_them_acts() -> None:
    [head, rule, row] = madepage.table(("a", "b"), [("x\n  <b>", "`^a|<b>$` <i>")])
    assert (head, rule) == ("| a | b |", "|---|---|")
    assert row == r"| x &lt;b> | `^a\|<b>$` &lt;i> |"

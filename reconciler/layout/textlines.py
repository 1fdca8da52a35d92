"""Lines of a text by offsets into it. Called by places, patch and filetext."""

from __future__ import annotations


def column(text: str, offset: int) -> int:
    """Characters between the beginning of the line and `offset`."""
    return offset - (text.rfind("\n", 0, offset) + 1)


def line_end(text: str, offset: int) -> int:
    """Where the line after the one of `offset` begins."""
    found = text.find("\n", offset)
    return len(text) if found < 0 else found + 1


def after_blank_lines(text: str, line: int) -> int:
    """Where the first line begins, from this one on, that has something in it; the end where there is none."""
    while line < len(text) and not text[line : line_end(text, line)].strip():
        line = line_end(text, line)
    return line


def begins_line(text: str, offset: int) -> bool:
    """Whether nothing but blanks stands before `offset` in its line."""
    return not text[text.rfind("\n", 0, offset) + 1 : offset].strip()


def comment_above(text: str, offset: int, floor: int | None) -> int:
    """Where the line of `offset` begins, or the comment right above it in the same column.

    Only what stands behind the line of `floor` is a comment and not a part of some text.
    """
    line = text.rfind("\n", 0, offset) + 1
    prefix = text[line:offset] + "#"
    least = line_end(text, floor) if floor is not None else 0
    while line > least:
        above = text.rfind("\n", 0, line - 1) + 1
        if above < least or not text.startswith(prefix, above):
            break
        line = above
    return line


def line_break(text: str) -> str:
    """The line breaks that a text has."""
    return "\r\n" if "\r\n" in text[:1000] else "\n"

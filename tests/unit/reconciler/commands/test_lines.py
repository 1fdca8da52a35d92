"""What `up` prints of what happens."""

from __future__ import annotations

from reconciler.commands.lines import HappenedLines


def test_of_each_sort_a_line_a_second_and_the_rest_as_a_count() -> None:
    lines = HappenedLines()
    assert lines.line("Held", "a is held", 10.0) == "a is held"
    assert lines.due(10.5) == ""
    assert lines.line("Mended", "a is mended", 11.0) == "a is mended"
    assert [lines.line("Held", f"{number}", 10.5) for number in range(30)] == [""] * 30
    assert lines.line("Mended", "b is mended", 11.5) == ""
    assert lines.line("Held", "b is held", 12.5) == "", "what waits to be counted is not overtaken"
    assert lines.due(13.0) == ""
    assert lines.due(13.5) == "and besides: 31 Held, 1 Mended (kubectl get events -A says which)"
    assert lines.due(20.0) == ""
    assert lines.line("Held", "b is held", 20.0) == "b is held"


def test_who_is_held_is_said_whatever_else_happens() -> None:
    lines = HappenedLines()
    assert [lines.line("DriftPutRight", "a Job", 10.0) for _ in range(3)] == ["a Job", "", ""]
    assert lines.line("Held", "a is held", 10.1) == "a is held"
    assert lines.due(13.0) == "and besides: 2 DriftPutRight (kubectl get events -A says which)"
    assert lines.line("DriftPutRight", "a Job", 13.5) == "", "a count is a line, too"

"""What `up` prints of what happens."""

from __future__ import annotations

from reconciler.commands.lines import HappenedLines


def test_a_line_a_second_and_the_rest_as_a_count() -> None:
    lines = HappenedLines()
    assert lines.line("Held", "a is held", 10.0) == "a is held"
    assert lines.due(10.5) == ""
    assert lines.line("Mended", "a is mended", 11.0) == "a is mended"
    assert [lines.line("Held", f"{number}", 11.5) for number in range(30)] == [""] * 30
    assert lines.line("Placed", "p", 12.5) == "", "what waits to be counted is not overtaken"
    assert lines.due(13.0) == ""
    assert lines.due(14.5) == "and besides: 30 Held, 1 Placed (kubectl get events -A says which)"
    assert lines.due(20.0) == ""
    assert lines.line("Held", "b is held", 20.0) == "b is held"

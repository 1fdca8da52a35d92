"""Changes a document's text where its value changes, and nowhere else. Called by edit.

What is not touched keeps its bytes: comments, order, quotation marks, indentation. The text may turn out wrong where
it is unusual (anchors, tags, merge keys); edit reads the result back and writes the document anew in that case.
"""

from __future__ import annotations

from typing import Any

from yaml.nodes import MappingNode, SequenceNode

from apiserver.kubeyaml.nodes import Node
from reconciler.layout import dump
from reconciler.layout.alike import pairs, same
from reconciler.layout.places import Splice, Unclear, YamlEntry, entries, indented, is_flow
from reconciler.layout.quoting import literal, scalar
from reconciler.layout.textlines import after_blank_lines, begins_line, column, comment_above, line_break, line_end

Arrangement = tuple[list[YamlEntry], list[int], dict[int, Any]]
"""The entries there are, the numbers of those that stay, what comes in after which of them (-1: before the first)."""
_WIDTH = 100
"""Characters up to which a collection that is written on one line stays there."""


def patched(text: str, root: Node, old: dict[str, Any], new: dict[str, Any]) -> list[Splice]:
    """The splices that make `new` of the document at `root`, which reads as `old`. Raises Unclear."""
    patch = _Patch(text, root)
    patch.change(YamlEntry(text, None, root, *[root.start_mark.index] * 3), old, new, flow=False)
    return patch.splices


class _Patch:
    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._break = line_break(text)
        self._indented = indented(text, root) is not False
        self.splices: list[Splice] = []

    def change(self, entry: YamlEntry, old: Any, new: Any, *, flow: bool) -> None:
        """Makes `new` of the value of an entry."""
        if same(old, new):
            return
        node, there = entry.node, None
        if entry.alias is None and isinstance(node, MappingNode) and isinstance(old, dict) and isinstance(new, dict):
            there = self._mapping(node, old, new)
        elif entry.alias is None and isinstance(node, SequenceNode) and isinstance(old, list) and isinstance(new, list):
            there = self._sequence(node, old, new)
        if there is None:
            self._rewrite(entry, new, flow=flow)
        elif is_flow(node):
            self._arrange_flow(*there)
        else:
            self._arrange(*there)

    def _mapping(self, node: Node, old: dict[str, Any], new: dict[str, Any]) -> Arrangement | None:
        there = entries(self._text, node)
        numbers = {entry.name: number for number, entry in enumerate(there) if entry.name is not None}
        if not any(name in new for name in numbers):
            return None
        if any(name not in numbers and name not in new for name in old):
            raise Unclear  # merged in from elsewhere
        for name in old.keys() & new.keys() & numbers.keys():
            self.change(there[numbers[name]], old[name], new[name], flow=is_flow(node))
        kept = [number for number, entry in enumerate(there) if entry.name is None or entry.name in new]
        additions: dict[int, Any] = {}
        at = kept[-1]
        for name, value in new.items():
            if name in numbers:
                at = numbers[name]
            elif name not in old or not same(old[name], value):
                additions.setdefault(at, {})[name] = value
        return there, kept, additions

    def _sequence(self, node: Node, old: list[Any], new: list[Any]) -> Arrangement | None:
        there = entries(self._text, node)
        if len(there) != len(old):
            raise Unclear
        matched = pairs(old, new)
        if not matched:
            return None
        for before, after in matched:
            self.change(there[before], old[before], new[after], flow=is_flow(node))
        by_new = {after: before for before, after in matched}
        additions: dict[int, Any] = {}
        at = -1
        for number, item in enumerate(new):
            if number in by_new:
                at = by_new[number]
            else:
                additions.setdefault(at, []).append(item)
        return there, [before for before, _ in matched], additions

    def _arrange_flow(self, there: list[YamlEntry], kept: list[int], additions: dict[int, Any]) -> None:
        first = kept[0]
        if first > 0:
            self._splice(there[0].start, there[first].start, "")
        for number in range(first + 1, len(there)):
            if number not in kept:
                self._splice(there[number - 1].end, there[number].end, "")
        for number, new in additions.items():
            text = dump.flow(new, json_style=self._text[there[0].start] == '"')[1:-1]
            if number >= 0:
                self._splice(there[number].end, there[number].end, ", " + text)
            else:
                self._splice(there[first].start, there[first].start, text + ", ")

    def _arrange(self, there: list[YamlEntry], kept: list[int], additions: dict[int, Any]) -> None:
        first = kept[0]
        if first > 0:
            self._behead(there, first)
        for number in range(first + 1, len(there)):
            if number not in kept:
                start = comment_above(self._text, there[number].start, there[number - 1].end)
                self._splice(start, line_end(self._text, there[number].end), "")
        indent = column(self._text, there[0].start)
        for number, new in additions.items():
            written = dump.mapping if isinstance(new, dict) else dump.sequence
            lines = written(new, indent, indented=self._indented)
            if number >= 0:
                at = line_end(self._text, there[number].end)
                # A text that keeps the line breaks at its end would take those that follow for its own.
                self._insert(after_blank_lines(self._text, at) if not lines[-1] else at, lines)
            else:
                self._insert_before(there, first, lines)

    def _insert_before(self, there: list[YamlEntry], first: int, lines: list[str]) -> None:
        start = there[first].start
        pad = " " * column(self._text, start)
        if begins_line(self._text, start):
            self._insert(comment_above(self._text, start, there[first - 1].end if first else None), lines)
        else:  # behind a dash
            self._splice(start, start, self._break.join(lines)[len(pad) :] + self._break + pad)

    def _behead(self, there: list[YamlEntry], first: int) -> None:
        """Takes out the entries before the first that is kept; the line may begin with the dash of an item."""
        text, start = self._text, there[0].start
        rest = comment_above(self._text, there[first].start, there[first - 1].end)
        if begins_line(self._text, start):
            self._splice(comment_above(self._text, start, None), rest, "")
        elif rest == text.rfind("\n", 0, there[first].start) + 1:
            self._splice(start, there[first].start, "")
        else:
            self._splice(len(text[:start].rstrip()), rest, self._break)

    def _rewrite(self, entry: YamlEntry, new: Any, *, flow: bool) -> None:
        """The value of an entry written anew."""
        text, node = self._text, entry.node
        style = getattr(node, "style", None) if isinstance(new, str) else None
        flows = is_flow(node) and bool(node.value) and entry.alias is None
        one_line = dump.flow(new, json_style='{"' in text[entry.begin : entry.begin + 2]) if flow or flows else ""
        if flow:
            self._splice(entry.begin, entry.end, scalar(new, flow=True, style=style) if style else one_line)
            return
        indent = column(text, entry.start)
        lines: list[str] = []
        if flows and isinstance(new, dict | list) and len(one_line) <= _WIDTH:
            head = one_line
        elif style in ("'", '"') and "\n" not in new:
            head = scalar(new, style=style)
        else:
            head, lines = self._block(entry, new, indent, style)
            end = line_end(text, entry.end)
            if isinstance(new, str) and lines and not lines[-1] and after_blank_lines(text, end) > end:
                head, lines = scalar(new), []
        self._replace_value(entry, head, lines)

    def _block(self, entry: YamlEntry, new: Any, indent: int, style: str | None) -> tuple[str, list[str]]:
        if style in ("|", ">"):
            body = self._text[line_end(self._text, entry.begin) : entry.end].lstrip("\r\n")
            block = literal(new, indent, max(len(body) - len(body.lstrip(" ")) - indent, 1))
            if block is not None:
                return block
        if entry.name is None:
            first, *lines = dump.sequence([new], indent, indented=self._indented)
            return first[indent + 2 :], lines
        return dump.below(new, indent, indented=self._indented)

    def _replace_value(self, entry: YamlEntry, head: str, lines: list[str]) -> None:
        text, after, end = self._text, entry.after, entry.end
        gap = text[after : entry.begin]
        if "\n" in gap:  # the old value begins in a line of its own: what stands behind the key stays
            self._splice(after, after, " " + head if head else "")
            self._splice(line_end(text, after), line_end(text, end), "")
        elif head:
            self._splice(after, end, (gap or " ") + head)
        else:
            self._splice(after, end, "")
        self._insert(line_end(text, end), lines)

    def _insert(self, at: int, lines: list[str]) -> None:
        if not lines:
            return
        before = "" if not at or self._text[at - 1] == "\n" else self._break
        self._splice(at, at, before + "".join(line + self._break for line in lines))

    def _splice(self, start: int, end: int, new: str) -> None:
        self.splices.append((start, end, new))

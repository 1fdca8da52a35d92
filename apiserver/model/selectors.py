"""Label and field selectors: parsed once, matched against labels or a few named fields.

Syntax and error texts follow apimachinery's labels.Parse and fields.ParseSelector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.model.errors import bad_request

_TOKEN = re.compile(r"\s*(!=|==|=|!|\(|\)|,|<|>|[^\s!=(),<>]+)")
_NAME = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Requirement:
    """`key operator values`. Operators: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        match self.operator:
            case "In":
                return present and labels[self.key] in self.values
            case "NotIn":
                return not present or labels[self.key] not in self.values
            case "Exists":
                return present
            case "DoesNotExist":
                return not present
            case _:
                return present and self._compare(labels[self.key])

    def _compare(self, value: str) -> bool:
        try:
            left, right = int(value), int(next(iter(self.values)))
        except ValueError:
            return False
        return left > right if self.operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements hold. Empty: everything."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def __bool__(self) -> bool:
        return self.nothing or bool(self.requirements)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        return not self.nothing and all(r.matches(labels or {}) for r in self.requirements)


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


def valid_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def valid_label_value(value: str) -> bool:
    return value == "" or (len(value) <= 63 and _NAME.fullmatch(value) is not None)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _TOKEN.findall(text.rstrip())  # blanks at the end would be looked at again from each of them
        self.at = 0
        if "".join(self.tokens) != "".join(text.split()):
            raise self.error(f"found '{text}'")

    def error(self, why: str) -> Exception:
        return bad_request(f"unable to parse requirement: {why}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def key(self) -> str:
        key = self.next()
        if not valid_label_key(key):
            raise self.error(
                f'<nil>: Invalid value: "{key}": name part must consist of alphanumeric characters, '
                "'-', '_' or '.', and must start and end with an alphanumeric character"
            )
        return key

    def requirement(self) -> Requirement:
        if self.peek() == "!":
            self.next()
            return Requirement(self.key(), "DoesNotExist")
        key, operator = self.key(), self.peek()
        if operator in ("", ","):
            return Requirement(key, "Exists")
        self.next()
        if operator in ("=", "=="):
            return Requirement(key, "In", frozenset({self.value()}))
        if operator == "!=":
            return Requirement(key, "NotIn", frozenset({self.value()}))
        if operator in (">", "<"):
            return Requirement(key, "Gt" if operator == ">" else "Lt", frozenset({self.value()}))
        if operator in ("in", "notin"):
            return Requirement(key, "In" if operator == "in" else "NotIn", self.values())
        raise self.error(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")

    def value(self) -> str:
        if self.peek() in ("", ","):
            return ""
        value = self.next()
        if not valid_label_value(value):
            raise self.error(
                f'values[0][]: Invalid value: "{value}": a valid label must be an empty string or consist '
                "of alphanumeric characters, '-', '_' or '.'"
            )
        return value

    def values(self) -> frozenset[str]:
        if self.next() != "(":
            raise self.error("found '', expected: '('")
        found: set[str] = set()
        while True:
            found.add(self.value() if self.peek() != ")" else "")
            token = self.next()
            if token == ")":
                return frozenset(found)
            if token != ",":
                raise self.error(f"found '{token}', expected: ',' or ')'")

    def parse(self) -> LabelSelector:
        found = []
        while self.at < len(self.tokens):
            found.append(self.requirement())
            if self.at < len(self.tokens) and self.next() != ",":
                raise self.error(f"found '{self.tokens[self.at - 1]}', expected: ',' or 'end of string'")
        return LabelSelector(tuple(found))


def parse_labels(text: str) -> LabelSelector:
    """`a=b,c in (d,e),!f`. Raises StatusError 400."""
    return _Parser(text).parse() if text.strip() else EVERYTHING


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A LabelSelector object (matchLabels, matchExpressions). None matches nothing, {} everything, as in Kubernetes."""
    if selector is None:
        return NOTHING
    found = [Requirement(k, "In", frozenset({v})) for k, v in (selector.get("matchLabels") or {}).items()]
    for e in selector.get("matchExpressions") or ():
        found.append(Requirement(e["key"], e["operator"], frozenset(e.get("values") or ())))
    return LabelSelector(tuple(found))


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    path: str
    value: str
    equal: bool


def parse_fields(text: str) -> tuple[FieldRequirement, ...]:
    """`metadata.name=a,status.phase!=Running`; a backslash escapes `,`, `=` and itself. Raises StatusError 400."""
    found = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue  # clients leave a comma behind the last
        match = re.fullmatch(r"([^!=]+)(==|!=|=)((?:[^\\=,]|\\[\\=,])*)", part)
        if match is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        path, operator, value = match.groups()
        found.append(FieldRequirement(path, re.sub(r"\\([\\=,])", r"\1", value), operator != "!="))
    return tuple(found)

"""Why bytes are no JSON, in the words of Go's decoder, which clients print as they are. Called by bodies.py."""

from __future__ import annotations

import orjson

from apiserver.schema.messages import quote

_END = "unexpected end of JSON input"
_PLACES = {
    "expected a JSON value": "looking for beginning of value",
    "expected ',' or '}'": "after object key:value pair",
    "expected ',' or ']'": "after array element",
    "expected a string key": "looking for beginning of object key string",
    "expected ':' after key": "after object key",
    "unexpected content after document": "after top-level value",
    "control character in string": "in string literal",
    "invalid escaped sequence": "in string escape code",
    "number": "in numeric literal",
    "digit": "in numeric literal",
}
"""By what orjson says: what Go was about at the character."""
_LITERALS = ("true", "false", "null")
_SHOWN = 30


def reason(error: orjson.JSONDecodeError) -> str:
    """What Go says of the same text."""
    text, at, said = error.doc, error.pos, error.msg
    if at >= len(text.rstrip()) or said.startswith("unexpected end"):
        return _END
    if said == "trailing comma is not allowed":
        at = next((i for i in range(at + 1, len(text)) if not text[i].isspace()), at)
        place = _PLACES["expected a string key" if text[at] == "}" else "expected a JSON value"]
        return f"invalid character {_character(text[at])} {place}"
    if said.startswith("invalid escaped sequence"):
        at = min(at + 1, len(text) - 1)
    for literal in _LITERALS:
        if said == f"invalid literal, expected '{literal}'":
            return _in_literal(text, at, literal)
    place = next((place for words, place in _PLACES.items() if words in said), "looking for beginning of value")
    return f"invalid character {_character(text[at])} {place}"


def shown(body: bytes) -> str:
    """The beginning of a body that could not be read."""
    if not body:
        return "<empty>"
    start = body[:_SHOWN]
    text = start.decode(errors="replace") if body[:1] == b"{" else start.hex()
    return f"{text} ..." if len(body) > _SHOWN else text


def _in_literal(text: str, at: int, literal: str) -> str:
    for index, expected in enumerate(literal):
        if at + index >= len(text):
            return _END
        if text[at + index] != expected:
            found = _character(text[at + index])
            return f"invalid character {found} in literal {literal} (expecting {_character(expected)})"
    return _END


def _character(char: str) -> str:
    if char == "'":
        return r"'\''"
    return "'\"'" if char == '"' else f"'{quote(char)[1:-1]}'"

"""Text of tenants and of sync targets: whatever reads it does so in time that follows its length.

One process serves everybody, and holds the interpreter while it matches a pattern.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from apiserver.kubeyaml import scalars
from apiserver.logs.lines import LogLines
from apiserver.model import brief, paths, selectors
from apiserver.model.errors import StatusError
from apiserver.registry import jsonpath, names, quantities
from apiserver.registry.behaviours import certificates
from apiserver.schema import formats
from reconciler.forges import body
from reconciler.layout import ignore, quoting
from reconciler.syncing import compare

LENGTH = 60_000
SECONDS = 2.0
"""A pattern whose time follows the square of the length takes a minute."""
SEEDS = [
    *"1a-. \t\n/:=,([{'\"\\%@#!", "a.", "a-", "1.", "0.", "1e", "1s", "1m", "a=", "a=b,", "a/", "0x", "::", "- ", "\n#",
    "é", "-----BEGIN A-----\n", "-----BEGIN ", "-----END A-----", "://", "a:b@",
]  # fmt: skip
TAILS = ["", "!", "x", "\0"]


def request(text: str) -> Any:
    encoded = base64.b64encode(text.encode()).decode()
    return certificates.check_request({"spec": {"request": encoded, "signerName": text, "usages": ["any"]}})


def logged(text: str) -> logging.LogRecord:
    return logging.LogRecord("apiserver", logging.WARNING, "", 1, "%s", (f"{text}?@",), None)


READERS: dict[str, Callable[[str], object]] = {
    "a quantity": quantities.canonical,
    "a quantity on a target": lambda text: compare.in_step({"a": text}, {"a": "1", "metadata": {}}),
    "a quantity beside another": compare._quantity,
    "a label selector": selectors.parse_labels,
    "a field selector": selectors.parse_fields,
    "a label's key": selectors.valid_label_key,
    "a label's value": names.label_value,
    "a name": names.dns_subdomain,
    "a label of a name": names.dns_label,
    "a printer column's path": jsonpath.compile_path,
    "a certificate signing request": request,
    "a signer": lambda text: certificates._signer("spec.signerName", text),
    "a certificate": lambda text: certificates._wrong_certificate(base64.b64encode(text.encode()).decode()),
    "a plain scalar": scalars.plain,
    "a scalar to write": quoting.scalar,
    "a workspace path": paths.is_path,
    "a comment on a pull request": body.harmless,
    "a message of the log": lambda text: LogLines("up", "text").format(logged(text)),
    "what a message begins with": brief.without_folders,
    "a message in brief": lambda text: brief.brief(text, 40),
    **{f"format {name}": check for name, check in formats._FORMATS.items()},
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_reading_is_linear(reader: Callable[[str], object]) -> None:
    for seed in SEEDS:
        for tail in TAILS:
            text = (seed * (LENGTH // len(seed) + 1))[:LENGTH] + tail
            begun = time.process_time()
            with suppress(ValueError, StatusError):
                reader(text)
            assert time.process_time() - begun < SECONDS, f"{seed!r} many times, then {tail!r}"


def test_numbers_that_would_fill_the_machine() -> None:
    for text in ("1e100000", "1e999999999", "1e-999999999", "9" * 1000, "1E9999999999999999999999"):
        with pytest.raises(ValueError, match="quantities must match"):
            quantities.canonical(text)
        assert compare._quantity(text) is None


def test_ignore_patterns_are_matched_in_linear_time() -> None:
    """`*a*a*…b` has as many ways to fail as there are ways to choose."""
    for pattern in ("*a" * 40 + "*b", "**/a" * 40 + "/b", "[a-z]*" * 40 + "0", "a**" * 40 + "b"):
        rules = ignore.rules("", "id", f"{pattern}\n".encode())
        begun = time.process_time()
        for name in ("a" * 250, "a/" * 120 + "a"):
            ignore.ignored((rules,), name)
        assert time.process_time() - begun < SECONDS


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value, "b": [value]}
    return value


DEEP: Any = {"a": 1}
for _ in range(190):
    DEEP = {"a": DEEP}
GRID: Any = [[[[[[1] * 8] * 8] * 8] * 8] * 8] * 8


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("..a" * 12, DEEP),
        ("..a" * 200, DEEP),
        ("[" + "0," * 300 + "0]" + "[0,0,0,0,0,0,0]" * 20, [[[[[[[[[[1]]]]]]]]]]),
        ("[*]" * 6, GRID),
        (".*" * 20, nested(12)),
        ("[?(@[*][*])]", [[[1] * 10] * 1000] * 1000),
        ("[?(@[" + "0," * 400 + "0])]", [[1]] * 100_000),
    ],
)
def test_a_printer_column_looks_at_so_much_and_no_more(path: str, value: Any) -> None:
    begun = time.process_time()
    jsonpath.compile_path(path).find(value)
    assert time.process_time() - begun < SECONDS


def test_a_printer_column_that_asks_for_everything_shows_nothing() -> None:
    assert jsonpath.compile_path("..a..a").find(DEEP)
    assert jsonpath.compile_path("..a..a..a..a").find(DEEP) == []
    assert jsonpath.compile_path("[?(@.a)].a").find([{"a": 1}, {"b": 2}]) == [1]
    with pytest.raises(ValueError, match="at most 1000 characters"):
        jsonpath.compile_path(".a" * 501)

"""The filter of system calls: its numbers are the kernel's, and it says what it is read to say."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from reconciler.rendering import seccomp

ALLOWED, REFUSED, ABSENT, KILLED = 0x7FFF_0000, 0x0005_0001, 0x0005_0026, 0x8000_0000
HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), 0),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), 1),
}
AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}


def verdict(code: bytes, number: int, *arguments: int, audit: int = AUDIT["x86_64"]) -> int:
    """What the kernel would make of a call: the filter, run by hand."""
    seen = struct.pack("<IIQ", number & 0xFFFF_FFFF, audit, 0) + b"".join(
        struct.pack("<Q", argument) for argument in (*arguments, *[0] * (6 - len(arguments)))
    )
    steps = list(struct.iter_unpack("=HBBI", code))
    at, held = 0, 0
    while True:
        what, yes, no, value = steps[at]
        at += 1
        if what == 0x06:
            return value
        if what == 0x20:
            held = struct.unpack_from("<I", seen, value)[0]
        else:
            at += yes if (held == value if what == 0x15 else held & value) else no


@pytest.mark.parametrize("machine", list(HEADERS))
def test_numbers_are_the_kernels(machine: str) -> None:
    header, column = HEADERS[machine]
    if not header.is_file():
        pytest.skip(f"no {header}")
    text = header.read_text()
    found = {m[1]: int(m[2]) for m in re.finditer(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    found.setdefault("newfstatat", found.get("fstatat", 79))
    ours = {name: pair[column] for name, pair in {**seccomp._COMMON, **seccomp._WITH_CONDITIONS}.items()}
    ours |= seccomp._OLD if machine == "x86_64" else {}
    assert {name: found.get(name) for name in ours} == ours


def test_what_is_named_is_allowed_and_all_else_is_not_there() -> None:
    code = seccomp.filter_for()
    assert code is not None
    allowed = {pair[0] for pair in seccomp._COMMON.values()} | set(seccomp._OLD.values())
    special = {pair[0] for pair in seccomp._WITH_CONDITIONS.values()}
    for number in range(600):
        if number not in special:
            assert verdict(code, number) == (ALLOWED if number in allowed else ABSENT), number
    assert verdict(code, 0x4000_0000) == ABSENT
    assert verdict(code, 0, audit=0x4000_0003) == KILLED


def test_what_is_allowed_on_conditions() -> None:
    code = seccomp.filter_for(own=77)
    assert code is not None
    assert verdict(code, 56, 0x10000 | 0x100) == ALLOWED  # a thread
    assert verdict(code, 56, 17) == REFUSED  # a process
    assert verdict(code, 234, 77) == ALLOWED  # a signal to itself
    assert verdict(code, 234, 1) == REFUSED
    assert verdict(code, 302, 0) == ALLOWED and verdict(code, 302, 1) == REFUSED
    assert verdict(code, 157, 1) == REFUSED  # not to outlive its parent
    assert verdict(code, 16, 0, 0x5412) == REFUSED  # TIOCSTI
    assert verdict(code, 72, 0, 3) == ALLOWED and verdict(code, 72, 0, 8) == REFUSED  # F_GETFL, F_SETOWN
    assert {verdict(code, 41, family) for family in range(50)} == {REFUSED}


def test_on_another_processor_there_is_none() -> None:
    assert seccomp.filter_for(machine="riscv64") is None

"""Gives up all rights that a renderer does not need, and becomes the renderer.

Started by `landlock` as a program of its own, with nothing but Python's standard library at hand: what it does to
itself holds for the rest of its life, so it cannot be done in a process that has more to do. Its one argument is JSON;
every step that fails ends it with the reason, before the renderer begins.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
from typing import Any, NoReturn

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_PDEATHSIG, _SET_SECCOMP, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 22, 24, 38
_SECCOMP_FILTER = 2
_CAPABILITY_VERSION = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]


def handled(abi: int) -> tuple[int, int, int]:
    """What is forbidden but for what a rule allows, as the kernel's version of Landlock knows it: rights to files, to
    TCP, and what reaches other processes."""
    files = next(bits for least, bits in ((5, 16), (3, 15), (2, 14), (1, 13)) if abi >= least)
    return (1 << files) - 1, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0


def _main(told: dict[str, Any]) -> NoReturn:
    os.chdir(told["directory"])
    _call(_libc.prctl, _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != told["parent"]:
        sys.exit("whoever asked for it is gone")
    for number, limits in told["limits"]:
        resource.setrlimit(number, limits)
    _drop_capabilities()
    _call(_libc.prctl, _NO_NEW_PRIVS, 1, 0, 0, 0)
    _restrict(told["abi"], told["read"], told["run"])
    calls = bytes.fromhex(told["calls"]).replace(struct.pack("I", told["own"]), struct.pack("I", os.getpid()))
    _filter(calls)
    status = told["status"]
    os.set_inheritable(status, False)
    os.write(status, b"ready\n")
    os.execve(told["program"], told["command"], told["environment"])  # noqa: S606


def _drop_capabilities() -> None:
    """Of whoever is root: what is left is the owner of files, whom Landlock holds."""
    for capability in range(64):
        _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call(_libc.capset, header, bytes(24))


def _restrict(abi: int, read: list[str], run: list[str]) -> None:
    files, network, others = handled(abi)
    attributes = struct.pack("QQQ", files, network, others)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    rules = _call(_libc.syscall, _CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for paths, rights in ((read, _READ_FILE), (run, _READ_FILE | _EXECUTE)):
        for path in paths:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = rights | (_READ_DIR if os.path.isdir(path) else 0)  # noqa: PTH112
            rule = struct.pack("=Qi", allowed, place)
            _call(_libc.syscall, _ADD_RULE, rules, _RULE_PATH_BENEATH, rule, 0)
            os.close(place)
    _call(_libc.syscall, _RESTRICT_SELF, rules, 0)
    os.close(rules)


def _filter(calls: bytes) -> None:
    steps = ctypes.create_string_buffer(calls, len(calls))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(calls) // 8, ctypes.addressof(steps)))
    _call(_libc.prctl, _SET_SECCOMP, _SECCOMP_FILTER, ctypes.addressof(program), 0, 0)


def _call(function: Any, *arguments: Any) -> int:
    result: int = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        sys.exit(f"{os.strerror(number)} ({function.__name__} {arguments[0]!r})")
    return result


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))

"""Which calls of the kernel a renderer may make, as the filter that the kernel runs before each.

Used by both sandboxes. It names what a program needs that reads files, computes and writes to what it was given open;
of everything else the kernel says that it has no such call. So there is no socket of any family, no other process, no
signal to one, no mount, no trace, and no call that a later kernel brings. Numbers are of the two processors that
Treeplane has wheels for; on another there is no filter, and nothing is rendered.
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple

OWN = 0x7FFF_FFFE
"""Stands in a filter for a process whose number is known once it is there: none has this one."""

_COMMON = {
    "futex": (202, 98), "read": (0, 63), "write": (1, 64), "close": (3, 57), "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115), "clock_gettime": (228, 113), "clock_getres": (229, 114), "gettimeofday": (96, 169),
    "sched_yield": (24, 124), "mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    "madvise": (28, 233), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "sigaltstack": (131, 132), "restart_syscall": (219, 128), "epoll_pwait": (281, 22),
    "epoll_ctl": (233, 21), "epoll_create1": (291, 20), "eventfd2": (290, 19), "ppoll": (271, 73),
    "pselect6": (270, 72), "openat": (257, 56), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "lseek": (8, 62), "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66), "getdents64": (217, 61),
    "readlinkat": (267, 78), "faccessat": (269, 48), "faccessat2": (439, 439), "statfs": (137, 43),
    "fstatfs": (138, 44), "fadvise64": (221, 223), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50),
    "dup": (32, 23), "dup3": (292, 24), "pipe2": (293, 59), "execve": (59, 221),
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293), "getrandom": (318, 278),
    "uname": (63, 160), "sysinfo": (99, 179), "getrusage": (98, 165), "times": (100, 153), "getpid": (39, 172),
    "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176),
    "getegid": (108, 177), "sched_getaffinity": (204, 123), "getrlimit": (97, 163),
    "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
"""Name: number on x86_64, on aarch64. `execve` starts the program itself; that it finds no other is the sandboxes'."""
_OLD = {
    "time": 201, "epoll_wait": 232, "poll": 7, "select": 23, "open": 2, "stat": 4, "lstat": 6, "readlink": 89,
    "access": 21, "dup2": 33, "pipe": 22, "arch_prctl": 158, "getpgrp": 111,
}  # fmt: skip
"""Those that x86_64 alone has."""
_WITH_CONDITIONS = {
    "clone": (56, 220), "prctl": (157, 167), "ioctl": (16, 29), "tgkill": (234, 131), "prlimit64": (302, 261),
    "socket": (41, 198), "fcntl": (72, 25),
}  # fmt: skip

_CLONE_THREAD = 0x10000
_PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA = 15, 16, 0x53564D41
_TCGETS, _FIOCLEX = 0x5401, 0x5451
_F_PLAIN = (0, 1, 2, 3, 4, 1030)
"""To duplicate a descriptor and to see and set its flags; not to have signals sent to whom one likes (F_SETOWN)."""

_LOAD, _EQUALS, _HAS, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Where these stand in what the kernel lets a filter see; an argument takes eight bytes, its low half first."""
_ALLOW, _KILL, _ERROR = 0x7FFF_0000, 0x8000_0000, 0x0005_0000


class _Processor(NamedTuple):
    audit: int
    column: int


_PROCESSORS = {"x86_64": _Processor(0xC000_003E, 0), "aarch64": _Processor(0xC000_00B7, 1)}


def filter_for(own: int = OWN, machine: str = "") -> bytes | None:
    """The filter (an array of `struct sock_filter`), by default for this machine; None where there is none for it.
    `own`: the process that it is for, to which its own threads may send signals."""
    processor = _PROCESSORS.get(machine or platform.machine())
    if processor is None:
        return None
    numbers = [pair[processor.column] for pair in _COMMON.values()]
    if processor.column == 0:
        numbers += _OLD.values()
    special = {name: pair[processor.column] for name, pair in _WITH_CONDITIONS.items()}
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUALS, processor.audit, yes=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    for number in numbers:
        code += [_step(_EQUALS, number, no=1), _step(_RETURN, _ALLOW)]
    # Threads, no processes; of the rest what runtimes of languages do to themselves.
    code += _where(special["clone"], 0, _HAS, (_CLONE_THREAD,))
    code += _where(special["prctl"], 0, _EQUALS, (_PR_SET_NAME, _PR_GET_NAME, _PR_SET_VMA))
    code += _where(special["ioctl"], 1, _EQUALS, (_TCGETS, _FIOCLEX))
    code += _where(special["fcntl"], 1, _EQUALS, _F_PLAIN)
    code += _where(special["tgkill"], 0, _EQUALS, (own,))
    code += _where(special["prlimit64"], 0, _EQUALS, (0,))
    code += _where(special["socket"], 0, _EQUALS, ())
    return b"".join([*code, _step(_RETURN, _ERROR | errno.ENOSYS)])


def _where(number: int, argument: int, test: int, values: tuple[int, ...]) -> list[bytes]:
    """A call that is allowed where one of its arguments is one of some, and else not permitted."""
    tests = [step for value in values for step in (_step(test, value, no=1), _step(_RETURN, _ALLOW))]
    inside = [_step(_LOAD, _ARGUMENTS + 8 * argument), *tests, _step(_RETURN, _ERROR | errno.EPERM)]
    return [_step(_EQUALS, number, no=len(inside)), *inside]


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no`: how many are passed over."""
    return struct.pack("=HBBI", code, yes, no, value)

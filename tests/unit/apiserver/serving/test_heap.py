"""One heap for all threads of a server, and none for what is large: memory that was given back serves others."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

BEGIN = """
import ctypes, sys, threading
from apiserver import heap
if sys.argv[1] == "shared":
    heap.share()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
"""
HEAPS = """
libc.fopen.restype, libc.fclose.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
libc.malloc_info.argtypes = [ctypes.c_int, ctypes.c_void_p]
together = threading.Barrier(4)

def take():
    libc.free(libc.malloc(50_000))
    together.wait()

threads = [threading.Thread(target=take) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
out = libc.fopen(b"/dev/stdout", b"w")
libc.malloc_info(0, out)
libc.fclose(out)
"""
LARGE = """
for _ in range(2):
    block = libc.malloc(2 << 20)
    mapped = ctypes.c_size_t.from_address(block - 8).value & 2  # IS_MMAPPED, in the size before a block
    libc.free(block)
print("mapped" if mapped else "from the heap")
"""

glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="not with glibc")
either = pytest.mark.parametrize("shared", [True, False])


def shown(program: str, shared: bool) -> str:
    command = [sys.executable, "-c", BEGIN + program, "shared" if shared else "as they come"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@glibc
@either
def test_threads_share_a_heap(shared: bool) -> None:
    assert (shown(HEAPS, shared).count("<heap nr=") == 1) is shared


@glibc
@either
def test_what_is_large_is_given_back_each_time(shared: bool) -> None:
    assert shown(LARGE, shared).strip() == ("mapped" if shared else "from the heap")

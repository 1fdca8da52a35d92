"""One heap for all threads of a server's process: memory that one gave back serves the others."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

HEAPS = """
import ctypes, sys, threading
from apiserver import heap
if sys.argv[1] == "shared":
    heap.share()
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
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


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="not with glibc")
@pytest.mark.parametrize("shared", [True, False])
def test_threads_share_a_heap(shared: bool) -> None:
    command = [sys.executable, "-c", HEAPS, "shared" if shared else "as they come"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (shown.count("<heap nr=") == 1) is shared

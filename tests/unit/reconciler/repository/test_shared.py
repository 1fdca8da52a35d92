"""A lock of threads and processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from reconciler.repository.shared import SharedLock

ROOT = Path(__file__).parents[4]
COUNTING = """
import sys
from pathlib import Path
from reconciler.repository.shared import SharedLock
lock = SharedLock(Path(sys.argv[1]))
for _ in range(200):
    with lock:
        lock.count()
"""
HOLDING = """
import sys
from pathlib import Path
from reconciler.repository.shared import SharedLock
with SharedLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_nobody_is_counted_twice_or_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    assert SharedLock(file).number == 0
    command = [sys.executable, "-c", COUNTING, str(file)]
    others = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    lock = SharedLock(file)

    def count() -> None:
        for _ in range(200):
            with lock:
                lock.count()

    threads = [threading.Thread(target=count) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    assert lock.number == 800
    assert file.stat().st_mode & 0o777 == 0o600


def test_it_is_free_when_its_process_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDING, str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        taken = threading.Event()

        def take() -> None:
            with SharedLock(file):
                taken.set()

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        assert not taken.wait(0.1)
        other.kill()
        assert taken.wait(10)
        thread.join(10)

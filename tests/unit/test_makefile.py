"""What the Makefile names is there: a test that was moved would be left out of its target, or break it."""

from __future__ import annotations

import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]


def test_the_histories_that_make_runs_are_there() -> None:
    asked = ["make", "--silent", "--eval", "named: ; @echo $(HISTORIES)", "named"]
    named = subprocess.run(asked, cwd=TOP, capture_output=True, text=True, check=True).stdout.split()
    assert len(named) > 10
    assert [each for each in named if not (TOP / each).exists()] == []

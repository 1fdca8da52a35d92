"""Directories that are no fleets, as they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Directory = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    """Makes one called `mine`, of files by path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def make(files: Mapping[str, str]) -> Path:
        top = tmp_path / "mine"
        top.mkdir()
        for path, text in files.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(text)
        return top

    return make

"""docs/beginning.md, typed as it is printed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.adoptable import ARGO, FLUX, PLAIN

ROOT = Path(__file__).parents[5]
BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs/beginning.md").read_text(), re.DOTALL)
_TREEPLANE = f'set -e\ntreeplane() {{ PYTHONPATH={ROOT} {sys.executable} -m reconciler "$@"; }}\n'


def _write(top: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_page_as_it_is_printed(block: str, tmp_path: Path) -> None:
    if "flux" in block and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    _write(tmp_path / "manifests", PLAIN)
    _write(tmp_path / "flux-repo", FLUX)
    _write(tmp_path / "argo-repo", ARGO)
    done = subprocess.run(
        ["bash", "-c", _TREEPLANE + block],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no errors in" in done.stdout.splitlines()[-1]
    assert "\nnext:\n" in done.stdout


def test_all_of_the_page_is_typed() -> None:
    text = (ROOT / "docs/beginning.md").read_text()
    assert text.count("```") == 2 * len(BLOCKS) == 6

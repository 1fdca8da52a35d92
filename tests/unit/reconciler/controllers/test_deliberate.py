"""Which disappearances are deletions."""

from __future__ import annotations

import pytest

from apiserver.model import marks
from reconciler.controllers.deliberate import deliberate


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({marks.SOURCE_PATH: "workspaces/root/a.yaml", marks.SOURCE_COMMIT: "c1"}, True),
        ({marks.ORIGIN: marks.RUNTIME}, True),
        ({marks.SOURCE_PATH: "keys/secrets/root/kube.yaml", marks.SOURCE_COMMIT: "c1"}, False),
        ({marks.ORIGIN: marks.SYSTEM}, False),
        ({}, False),
    ],
)
def test_deliberate(annotations: dict[str, str], expected: bool) -> None:
    assert deliberate({"metadata": {"name": "x", "annotations": annotations}}) is expected

"""Whoever would be held for another workspace's mistake is a number in each form of a review."""

from __future__ import annotations

from apiserver.model.commits import NONE
from reconciler.layout.errors import LayoutError
from reconciler.loading.changeset import ChangeKind
from reconciler.review.result import ChangeReview, WorkspaceDifference
from reconciler.review.telling import markdown, structured, text

MISTAKE = LayoutError("workspaces/root/crew.yaml", 3, 0, "is no good")
WAITING = {"root": [f"root:t{number}" for number in range(312)]}
LINE = "312 workspaces wait for workspace root, which is held: root:t0, root:t1, root:t10 and 309 more"


def test_one_line_for_all_of_them() -> None:
    root = WorkspaceDifference("root", ChangeKind.HELD, why=(MISTAKE,))
    review = ChangeReview("a", "b", (NONE, NONE), workspaces=(root,), waiting=WAITING)
    assert review.holds
    lines = text.told(review).splitlines()
    assert lines.count(LINE) == 1
    assert lines[-1] == "1 workspace held; 312 held for another workspace's mistake"
    assert LINE in markdown.told(review)
    assert structured.told(review)["waiting"] == [{"for": "root", "workspaces": WAITING["root"]}]

"""Drills as people read them: one that finds nothing, and one that finds much."""

from __future__ import annotations

from pathlib import Path

import pytest

from apiserver.model.commits import own
from reconciler.drilling.comparison import CHANGED, MADE, MISSING, RecordDifference
from reconciler.drilling.keysneeded import NeededKey
from reconciler.drilling.rehearsal import Rehearsal
from reconciler.drilling.result import Drill, RecoveryPoint
from reconciler.drilling.telling import as_text

FOLDER = Path(__file__).parent / "drills"
AT = 1_767_225_600
KEYS = (
    NeededKey("ca.key", "the certificates that clients have, and the one that they trust", (), True),
    NeededKey("identities/abc:widgets", "the identity key of an APIExport", ("root:a:widgets",), False),
    NeededKey("secrets/", "Secrets that were written through the API, since writes are commits", ("root:b",)),
)
FIELDS = tuple(f"status.conditions[type=Ready{n}].message" for n in range(30))


def point(**more: object) -> RecoveryPoint:
    found = RecoveryPoint("treeplane/status", "a" * 40, AT + 4, own("b" * 40), AT, "b" * 40, AT, 0, False, 0)
    return found._replace(**more)


SAME = Rehearsal((), {}, {}, 0, 12, (), KEYS[:1], (2.25, 0.5), with_keys=True, ours=True)
MUCH = Rehearsal(
    (
        RecordDifference("fleet.yaml", CHANGED, ("targets",)),
        RecordDifference("notes.txt", MISSING),
        RecordDifference("workspaces/root/a/_status/default/deployments.apps/web.yaml", CHANGED, FIELDS),
        RecordDifference("workspaces/root/b/_summary.yaml", CHANGED, (), alike=True),
        RecordDifference("workspaces/root/c/_summary.yaml", MADE),
    ),
    {"root:d": ("workspaces/root/d: was served, and cannot be brought back: could not be judged",)},
    {"root:shop": "https://git.example.org/shop/deploy.git"},
    2,
    12,
    tuple(f"root:lab{n}" for n in range(12)),
    KEYS,
    (2.25, 0.5),
    signed=True,
    ours=False,
)
DRILLS = {
    "same": Drill("fleet.git", point(), 1.25, SAME),
    "behind": Drill("fleet.git", point(head="c" * 40, head_at=AT + 560, behind=2, arriving=1), 1.25, SAME),
    "much": Drill("fleet.git", point(head="c" * 40, left=True), 1.25, MUCH),
}


@pytest.mark.parametrize("name", DRILLS)
def test_drills(name: str, *, update_golden: bool) -> None:
    told, file = as_text(DRILLS[name]), FOLDER / f"{name}.txt"
    if update_golden:
        FOLDER.mkdir(exist_ok=True)
        file.write_text(told)
    assert told == file.read_text()

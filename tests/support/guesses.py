"""What a tenant may guess of another: all of its names, what ann has herself, and what only looks like a name.

For the strategies of intrusion, borrowing and hostilewrites.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st
from support.ground import Foreign
from support.tenants import Words

OWN = (*["root:ann"] * 3, *["root:ann:kid"] * 2, *["root:ann:made"] * 3, "root:ann:door")
"""ann's workspaces; door is a mount."""


class Known(NamedTuple):
    """`names`: of whatever object; `groups`: group, version and plural of bea's kinds; `robot`: the token of ann's
    ServiceAccount."""

    foreign: Foreign
    worlds: tuple[str, ...]
    programs: tuple[str, ...]
    exports: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[tuple[str, str, bool], ...]
    robot: str

    @staticmethod
    def of(foreign: Foreign, robot: str) -> Known:
        word = Words("p")
        worlds = [
            *foreign.clusters,
            *foreign.clusters.values(),
            "root",
            "*",
            "system:admin",
            "root:none",
            "nosuchcluster00",
        ]
        worlds += ["ROOT:BEE", "root:bee:none", "user:eve", "root:ann:none", "root:bee%20", "", ".", "root:compute"]
        bee, child = foreign.clusters["root:bee"], foreign.clusters[f"root:bee:{word('child')}"]
        programs = [f"{c}:{t}" for c in (bee, child, "root") for t in (word("type"), "hers", "gold", "none")]
        kinds = [(f"apis/{word(group)}.example.io/v1", f"{word(kind)}s", False)
                 for group, kind in (("group", "kind"), ("offer", "good"), ("gone", "going"))]  # fmt: skip
        words = (
            "map",
            "secret",
            "space",
            "one",
            "child",
            "waits",
            "ending",
            "sleeping",
            "export",
            "type",
            "goods",
            "site",
        )
        names = [
            *map(word, words),
            "mine",
            "hers",
            "robot",
            "cluster",
            "cluster-admins",
            "gifts",
            "w",
            "bee",
            "none",
            "~",
        ]
        names += [f"{kind}.{api.split('/')[1]}" for api, kind, _ in kinds]
        return Known(foreign, tuple(worlds), tuple(programs), (word("export"), "gifts", "none"), tuple(names),
                     tuple(kinds), robot)  # fmt: skip


def either(*ways: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Each as often as the others, however many ways there are in it; one that comes twice, twice as often."""
    return st.sampled_from(ways).flatmap(lambda way: way)

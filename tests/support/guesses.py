"""What a tenant may guess of another: all of its names, what ann has herself, and what only looks like a name.

For the strategies of intrusion, borrowing and hostilewrites.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st
from support.ground import Foreign, Ground
from support.tenants import Words

OWN = (*["root:ann"] * 3, *["root:ann:kid"] * 2, *["root:ann:made"] * 3, "root:ann:door")
"""ann's workspaces; door is a mount."""
_WORLDS = (
    *("root", "*", "system:admin", "root:none", "nosuchcluster00", "ROOT:BEE", "root:bee:none", "user:eve", "user:ann"),
    *("root:ann:none", "root:bee%20", "", ".", "root:compute"),
)
_WORDS = ["map", "secret", "space", "one", "child", "waits", "ending", "sleeping", "export", "type", "goods", "site"]
_NAMES = ["mine", "hers", "robot", "cluster", "cluster-admins", "gifts", "w", "bee", "none", "~"]


class Known(NamedTuple):
    """`names`: of whatever object; `kinds`: of bea's, as group and version, plural, and whether in namespaces; `robot`:
    the token of ann's ServiceAccount; `own`: a program of ann's, which acts on workspaces of her type."""

    foreign: Foreign
    worlds: tuple[str, ...]
    programs: tuple[str, ...]
    exports: tuple[str, ...]
    names: tuple[str, ...]
    kinds: tuple[tuple[str, str, bool], ...]
    robot: str
    own: str

    @staticmethod
    def of(ground: Ground, *, shared: bool) -> Known:
        word, foreign = Words("p"), ground.known(shared)
        worlds = [*foreign.clusters, *foreign.clusters.values(), *_WORLDS]
        bee, child = foreign.clusters["root:bee"], foreign.clusters[f"root:bee:{word('child')}"]
        own = f"{ground.own}:hers"
        programs = [own, *(f"{c}:{t}" for c in (bee, child, "root") for t in (word("type"), "hers", "gold", "none"))]
        kinds = [(f"apis/{word(group)}.example.io/v1", f"{word(kind)}s", False)
                 for group, kind in (("group", "kind"), ("offer", "good"), ("gone", "going"))]  # fmt: skip
        names = [*map(word, _WORDS), *_NAMES, *(f"{kind}.{api.split('/')[1]}" for api, kind, _ in kinds)]
        exports = (word("export"), "gifts", "none")
        return Known(foreign, tuple(worlds), tuple(programs), exports, tuple(names), tuple(kinds), ground.robot, own)


def either(*ways: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Each as often as the others, however many ways there are in it; one that comes twice, twice as often."""
    return st.sampled_from(ways).flatmap(lambda way: way)

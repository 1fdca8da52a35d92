"""`kubectl ws tree`: the workspaces from the current one down, as far as the user may list them, and which of them are
not as they should be."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.plugin.client import Answer, Object
from reconciler.plugin.marks import PLACEMENTS, of_placement, of_workspace
from reconciler.plugin.session import CLUSTERS, WORKSPACES, Session, ShownWorkspace

_PAGE = 500
_BRACKETS = " []"


class _Below(NamedTuple):
    """All workspaces by their parent's logical cluster, and what Placements say by theirs."""

    workspaces: dict[str, list[Object]]
    placements: dict[str, str]


class ShownTree:
    """From where the session stands."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def lines(self, full: bool) -> list[str]:
        """As kcp's plugin prints them."""
        place = self._session.current()
        below = self._everything() if place.path == "root" and place.cluster else None
        children = self._children(place, below, must=True)
        return [
            ".",
            f"└── {place.path if full else place.path.rpartition(':')[2]}",
            *self._lines(children, below, full),
        ]

    def listed(self) -> list[Object]:
        """The same as data, parents first."""
        place = self._session.current()
        below = self._everything() if place.path == "root" and place.cluster else None
        found: list[Object] = [
            {"path": place.path, "cluster": place.cluster, "mount": False, "held": "", "placements": ""}
        ]
        stack = self._children(place, below, must=True)[::-1]
        while stack:
            child = stack.pop()
            placed = self._placed(child, below).strip(_BRACKETS)
            found.append({**child, "held": child["held"].strip(_BRACKETS), "placements": placed})
            stack += self._children(ShownWorkspace(child["path"], cluster=child["cluster"]), below)[::-1]
        return found

    def _lines(self, children: list[Object], below: _Below | None, full: bool) -> list[str]:
        """Depth first with a stack, since workspaces may nest deeper than Python calls."""
        lines = []
        stack = [(child, "    ", at == len(children) - 1) for at, child in enumerate(children)][::-1]
        while stack:
            child, indent, last = stack.pop()
            path = child["path"]
            label = path if full else path.rpartition(":")[2]
            said = f"{' [m]' if child['mount'] else ''}{child['held']}{self._placed(child, below)}"
            lines.append(f"{indent}{'└──' if last else '├──'} {label}{said}")
            grandchildren = self._children(ShownWorkspace(path, cluster=child["cluster"]), below)
            deeper = indent + ("    " if last else "│   ")
            stack += [(c, deeper, at == len(grandchildren) - 1) for at, c in enumerate(grandchildren)][::-1]
        return lines

    def _children(self, place: ShownWorkspace, below: _Below | None, *, must: bool = False) -> list[Object]:
        """Sorted by name; none where they cannot be listed, unless they `must` (or it is just not permitted)."""
        if below is None:
            found, answer = self._list(f"{CLUSTERS}{place.path}")
            if must and answer.status not in (200, 403):
                raise answer.denial(place.path)
        else:
            found = below.workspaces.get(place.cluster, [])
        brief = [
            {
                "path": f"{place.path}:{workspace['metadata']['name']}",
                "cluster": (workspace.get("spec") or {}).get("cluster", ""),
                "mount": bool((workspace.get("spec") or {}).get("mount")),
                "held": of_workspace(workspace),
            }
            for workspace in found
        ]
        return sorted(brief, key=lambda child: str(child["path"]))

    def _placed(self, child: Object, below: _Below | None) -> str:
        """What the first of its Placements says that has not all on its sync target; "" where none does, or the user
        may not see them."""
        if below is not None:
            return below.placements.get(child["cluster"], "")
        if child["mount"]:
            return ""
        found, _ = self._list(f"{CLUSTERS}{child['path']}", PLACEMENTS)
        return next(filter(None, map(of_placement, found)), "")

    def _everything(self) -> _Below | None:
        """In one list of each kind; None where that is not permitted."""
        found, answer = self._list(f"{CLUSTERS}*")
        if answer.status != 200:
            return None
        below = _Below({}, {})
        for workspace in found:
            below.workspaces.setdefault(_cluster(workspace), []).append(workspace)
        for placement in self._list(f"{CLUSTERS}*", PLACEMENTS)[0]:
            if said := of_placement(placement):
                below.placements.setdefault(_cluster(placement), said)
        return below

    def _list(self, prefix: str, kind: str = WORKSPACES) -> tuple[list[Object], Answer]:
        """All pages, and the last answer."""
        found: list[Object] = []
        token = ""
        while True:
            answer = self._session.client.get(f"{prefix}{kind}", {"limit": str(_PAGE), "continue": token})
            if answer.status != 200:
                return [], answer
            found += answer.object.get("items") or []
            token = (answer.object.get("metadata") or {}).get("continue", "")
            if not token:
                return found, answer


def _cluster(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get("kcp.io/cluster", ""))

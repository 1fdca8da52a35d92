"""`kubectl ws tree`: the workspaces from the current one down, as far as the user may list them."""

from __future__ import annotations

from reconciler.plugin.client import Answer, Object
from reconciler.plugin.session import CLUSTERS, WORKSPACES, Session, ShownWorkspace

_PAGE = 500


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
        found: list[Object] = [{"path": place.path, "cluster": place.cluster, "mount": False}]
        stack = self._children(place, below, must=True)[::-1]
        while stack:
            child = stack.pop()
            found.append(child)
            stack += self._children(ShownWorkspace(child["path"], cluster=child["cluster"]), below)[::-1]
        return found

    def _lines(self, children: list[Object], below: dict[str, list[Object]] | None, full: bool) -> list[str]:
        """Depth first with a stack, since workspaces may nest deeper than Python calls."""
        lines = []
        stack = [(child, "    ", at == len(children) - 1) for at, child in enumerate(children)][::-1]
        while stack:
            child, indent, last = stack.pop()
            path = child["path"]
            label = path if full else path.rpartition(":")[2]
            lines.append(f"{indent}{'└──' if last else '├──'} {label}{' [m]' if child['mount'] else ''}")
            grandchildren = self._children(ShownWorkspace(path, cluster=child["cluster"]), below)
            deeper = indent + ("    " if last else "│   ")
            stack += [(c, deeper, at == len(grandchildren) - 1) for at, c in enumerate(grandchildren)][::-1]
        return lines

    def _children(
        self, place: ShownWorkspace, below: dict[str, list[Object]] | None, *, must: bool = False
    ) -> list[Object]:
        """Sorted by name; none where they cannot be listed, unless they `must` (or it is just not permitted)."""
        if below is None:
            found, answer = self._list(f"{CLUSTERS}{place.path}")
            if must and answer.status not in (200, 403):
                raise answer.denial(place.path)
        else:
            found = below.get(place.cluster, [])
        brief = [
            {
                "path": f"{place.path}:{workspace['metadata']['name']}",
                "cluster": (workspace.get("spec") or {}).get("cluster", ""),
                "mount": bool((workspace.get("spec") or {}).get("mount")),
            }
            for workspace in found
        ]
        return sorted(brief, key=lambda child: str(child["path"]))

    def _everything(self) -> dict[str, list[Object]] | None:
        """All workspaces by their parent's logical cluster, in one list; None where that is not permitted."""
        found, answer = self._list(f"{CLUSTERS}*")
        if answer.status != 200:
            return None
        by_parent: dict[str, list[Object]] = {}
        for workspace in found:
            parent = (workspace["metadata"].get("annotations") or {}).get("kcp.io/cluster", "")
            by_parent.setdefault(parent, []).append(workspace)
        return by_parent

    def _list(self, prefix: str) -> tuple[list[Object], Answer]:
        """All pages, and the last answer."""
        found: list[Object] = []
        token = ""
        while True:
            answer = self._session.client.get(f"{prefix}{WORKSPACES}", {"limit": str(_PAGE), "continue": token})
            if answer.status != 200:
                return [], answer
            found += answer.object.get("items") or []
            token = (answer.object.get("metadata") or {}).get("continue", "")
            if not token:
                return found, answer

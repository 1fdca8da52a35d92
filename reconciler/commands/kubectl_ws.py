"""`kubectl ws`: go from workspace to workspace. A kubectl plugin, installed as `kubectl-ws`.

    kubectl ws [.|current]            where am I
    kubectl ws [use] root:shop:web    there: a path (from the root), a name below here, `..`, or `-` for the last one
    kubectl ws tree                   the workspaces from here down

Texts and contexts (`workspace.kcp.io/current`, `workspace.kcp.io/previous`) are those of kcp's plugin, so that scripts
work with either. Imports nothing of Treeplane: a plugin has to start at once. Reading and writing kubeconfigs is
kubeconfigs.py's, talking to the server plain.py's.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from reconciler.commands.kubeconfigs import KubeconfigError, KubeconfigFiles
from reconciler.commands.plain import Answer, Client, Unreachable

CURRENT = "workspace.kcp.io/current"
PREVIOUS = "workspace.kcp.io/previous"
_CLUSTERS = "/clusters/"
_LOGICAL_CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
_WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
_PAGE = 500

Object = dict[str, Any]


class WsError(Exception):
    """What the user reads after `Error: `."""


class ShownWorkspace:
    """A workspace as the server knows it; `type` and `cluster` are "" where the user may not read them."""

    __slots__ = ("cluster", "path", "type")

    def __init__(self, path: str, type_: str = "", cluster: str = "") -> None:
        self.path, self.type, self.cluster = path, type_, cluster

    def told(self) -> str:
        return f"Current workspace is '{self.path}'" + (f" (type {self.type})." if self.type else ".")


class Plugin:
    """One invocation."""

    def __init__(self, config: KubeconfigFiles) -> None:
        self.config = config
        self.base, self.here = split_url(config.server())
        self.client = Client(self.base, config.credentials())

    def look_up(self, path: str) -> ShownWorkspace:
        """Raises Refused if there is no such workspace, or not for this user."""
        answer = self.client.get(f"{_CLUSTERS}{path}{_LOGICAL_CLUSTER}")
        if answer.status == 200:
            annotations = (answer.object.get("metadata") or {}).get("annotations") or {}
            type_ = annotations.get("internal.tenancy.kcp.io/type", "")
            return ShownWorkspace(annotations.get("kcp.io/path", path), type_, annotations.get("kcp.io/cluster", ""))
        if answer.status == 403 and self.client.get(f"{_CLUSTERS}{path}/apis").status == 200:
            # May be there but not read what it is.
            return ShownWorkspace(path)
        raise refusal(path, answer)

    def current(self) -> ShownWorkspace:
        if not self.here:
            raise WsError(f'current URL "{self.config.server()}" does not point to a workspace; try: kubectl ws root')
        return self.look_up(self.here)

    def use(self, target: str) -> ShownWorkspace:
        """Make `target` the current workspace."""
        if target == "-":
            return self._back()
        place = self.look_up(self._resolve(target))
        if place.path == self.here:
            return place
        self.config.remember(PREVIOUS, CURRENT, f"{self.base}{_CLUSTERS}{place.path}")
        return place

    def _back(self) -> ShownWorkspace:
        server = self.config.server(PREVIOUS)
        if server is None:
            raise WsError("no previous workspace found in kubeconfig")
        base, path = split_url(server)
        if base != self.base or not path:
            raise WsError(f'previous URL "{server}" does not point to a workspace of this server')
        place = self.look_up(path)
        self.config.exchange(PREVIOUS, CURRENT)
        return place

    def _resolve(self, target: str) -> str:
        """An absolute path. `root…` and `:…` are absolute, anything else starts here."""
        if target.startswith("~"):
            raise WsError("home workspaces are not supported")
        absolute = target.startswith(":") or _from_root(target)
        parts = [] if absolute else self._here().split(":")
        for part in target.removeprefix(":").split(":"):
            if part == "..":
                if len(parts) < 2:
                    raise WsError(f'current workspace is "{":".join(parts)}": it has no parent')
                parts.pop()
            elif part != ".":
                if not part:
                    raise WsError(f'invalid workspace path "{target}"')
                parts.append(part)
        return ":".join(parts)

    def _here(self) -> str:
        """The current path, looked up where the URL holds a logical cluster's name."""
        return self.here if _from_root(self.here) else self.current().path

    def tree(self, full: bool) -> list[str]:
        """Lines as kcp's plugin prints them."""
        place = self.current()
        below = self._everything() if place.path == "root" and place.cluster else None
        children = self._children(place, below, must=True)
        return [
            ".",
            f"└── {place.path if full else place.path.rpartition(':')[2]}",
            *self._lines(children, below, full),
        ]

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
            found, answer = self._list(f"{_CLUSTERS}{place.path}")
            if must and answer.status not in (200, 403):
                raise refusal(place.path, answer)
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
        found, answer = self._list(f"{_CLUSTERS}*")
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
            answer = self.client.get(f"{prefix}{_WORKSPACES}", {"limit": str(_PAGE), "continue": token})
            if answer.status != 200:
                return [], answer
            found += answer.object.get("items") or []
            token = (answer.object.get("metadata") or {}).get("continue", "")
            if not token:
                return found, answer


def split_url(server: str | None) -> tuple[str, str]:
    """`https://h:1/clusters/root:a` → (`https://h:1`, `root:a`); without a workspace the second is ""."""
    base, _, rest = (server or "").partition(_CLUSTERS)
    return base.rstrip("/"), rest.partition("/")[0]


def _from_root(path: str) -> bool:
    return path == "root" or path.startswith("root:")


def refusal(path: str, answer: Answer) -> WsError:
    match answer.status:
        case 404:
            return WsError(f'workspace "{path}" not found')
        case 403:
            return WsError(f'access to workspace "{path}" denied')
        case 401:
            return WsError("the server does not know who you are (Unauthorized): check the user of the current context")
        case _:
            return WsError(answer.object.get("message") or f"the server answered {answer.status}")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kubectl ws",
        description="Shows, changes and lists workspaces.",
        epilog="Example: kubectl ws root:shop:web",
    )
    parser.add_argument("what", nargs="*", help=". | current | tree | [use] PATH, NAME, .. or - (default: current)")
    parser.add_argument("--short", action="store_true", help="print the path alone")
    parser.add_argument("-f", "--full", action="store_true", help="tree: full paths")
    parser.add_argument("--kubeconfig", default="", help="the file to read and change instead of $KUBECONFIG")
    return parser


def _run(plugin: Plugin, what: list[str], options: argparse.Namespace) -> None:
    match what:
        case [] | ["."] | ["current"]:
            place = plugin.current()
        case ["tree"]:
            print("\n".join(plugin.tree(options.full)), end="\n\n")  # noqa: T201
            return
        case ["create", *_]:
            raise WsError("workspaces are directories: commit workspaces/root/…/<name>/workspace.yaml and push")
        case ["use", target] | [target]:
            place = plugin.use(target) if target != "." else plugin.current()
        case _:
            raise WsError(f"unexpected arguments: {' '.join(what)}; see kubectl ws --help")
    print(place.path if options.short else place.told())  # noqa: T201


def main() -> None:
    options = _arguments().parse_args()
    try:
        _run(Plugin(KubeconfigFiles.load(options.kubeconfig)), options.what, options)
    except (WsError, KubeconfigError, Unreachable) as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)


if __name__ == "__main__":
    main()

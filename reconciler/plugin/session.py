"""One run of a plugin: which server it talks to, as who, and in which workspace it stands.

What the commands of ws.py, and those that share APIs (bind.py, claims.py), begin with.
"""

from __future__ import annotations

from reconciler.plugin.client import Client
from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles

CLUSTERS = "/clusters/"
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
_LOGICAL_CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"


class ShownWorkspace:
    """A workspace as the server knows it; `type` and `cluster` are "" where the user may not read them."""

    __slots__ = ("cluster", "path", "type")

    def __init__(self, path: str, type_: str = "", cluster: str = "") -> None:
        self.path, self.type, self.cluster = path, type_, cluster

    def told(self) -> str:
        return f"Current workspace is '{self.path}'" + (f" (type {self.type})." if self.type else ".")


class Session:
    """`here`: what the current context's URL says of a workspace, a path or a logical cluster's name; "" if nothing."""

    def __init__(self, config: KubeconfigFiles) -> None:
        self.config = config
        self.base, self.here = split_url(config.server())
        self.client = Client(self.base, config.credentials())

    def url(self, path: str) -> str:
        """Of a workspace."""
        return f"{self.base}{CLUSTERS}{path}"

    def within(self, rest: str) -> str:
        """The path of a request to the current workspace. Raises PluginError if there is none."""
        if not self.here:
            raise PluginError(
                f'current URL "{self.config.server()}" does not point to a workspace; try: kubectl ws root'
            )
        return f"{CLUSTERS}{self.here}{rest}"

    def look_up(self, path: str) -> ShownWorkspace:
        """Raises PluginError if there is no such workspace, or not for this user."""
        answer = self.client.get(f"{CLUSTERS}{path}{_LOGICAL_CLUSTER}")
        if answer.status == 200:
            annotations = (answer.object.get("metadata") or {}).get("annotations") or {}
            type_ = annotations.get("internal.tenancy.kcp.io/type", "")
            return ShownWorkspace(annotations.get("kcp.io/path", path), type_, annotations.get("kcp.io/cluster", ""))
        if answer.status == 403 and self.client.get(f"{CLUSTERS}{path}/apis").status == 200:
            # May be there but not read what it is.
            return ShownWorkspace(path)
        parent, _, name = path.rpartition(":")
        # What is not there is denied like what one may not see; who may read the parent is told.
        if answer.status == 403 and parent and self.client.get(f"{CLUSTERS}{parent}{WORKSPACES}/{name}").status == 404:
            raise PluginError(f'workspace "{path}" not found')
        raise answer.denial(path)

    def current(self) -> ShownWorkspace:
        self.within("")
        return self.look_up(self.here)

    def path(self) -> str:
        """Of the current workspace, looked up where the URL holds a logical cluster's name."""
        return self.here if is_path(self.here) else self.current().path


def split_url(server: str | None) -> tuple[str, str]:
    """`https://h:1/clusters/root:a` → (`https://h:1`, `root:a`); without a workspace the second is ""."""
    base, _, rest = (server or "").partition(CLUSTERS)
    return base.rstrip("/"), rest.partition("/")[0]


def from_root(path: str) -> bool:
    return path == "root" or path.startswith("root:")


def is_path(text: str) -> bool:
    """Whether this is no logical cluster's name."""
    return text == "root" or ":" in text

"""One run of a plugin: which server it talks to, as who, and in which workspace it stands.

What the commands of ws.py, and those that share APIs (bind.py, claims.py), begin with.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from reconciler.plugin.client import SECONDS, Client
from reconciler.plugin.errors import MissingWorkspace, PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles

CLUSTERS = "/clusters/"
COMMITS = "/commits/"
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
_LOGICAL_CLUSTER = "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"


class ShownWorkspace:
    """A workspace as the server knows it; `type` and `cluster` are "" where the user may not read them. `at`: the
    commit that it is read at, "" for what is served."""

    __slots__ = ("at", "cluster", "path", "type")

    def __init__(self, path: str, type_: str = "", cluster: str = "", at: str = "") -> None:
        self.path, self.type, self.cluster, self.at = path, type_, cluster, at

    def told(self) -> str:
        type_, at = f" (type {self.type})" if self.type else "", f" at commit {self.at[:10]}" if self.at else ""
        return f"Current workspace is '{self.path}'{type_}{at}."


class ServerPlace(NamedTuple):
    """What a context's URL says. `base`: the server's; `at`: a commit; `path`: a workspace, or a logical cluster's
    name; both "" where nothing is said of them."""

    base: str
    at: str
    path: str

    @staticmethod
    def of(server: str | None) -> ServerPlace:
        """`https://h:1/commits/5d3e/clusters/root:a` → (`https://h:1`, `5d3e`, `root:a`)."""
        base, _, rest = (server or "").partition(CLUSTERS)
        base, _, at = base.partition(COMMITS)
        return ServerPlace(base.rstrip("/"), at, rest.partition("/")[0])

    @property
    def world(self) -> str:
        """The URL below which its workspaces are."""
        return f"{self.base}{COMMITS}{quote(self.at)}" if self.at else self.base


class Session:
    """`here`: what the current context's URL says of a workspace, a path or a logical cluster's name; "" if nothing.
    `at`: the commit that is read, "" for what is served."""

    def __init__(self, config: KubeconfigFiles, at: str | None = None, seconds: float = SECONDS) -> None:
        """`at`: another commit than the URL says, "" for none. `seconds`: how long an answer may take."""
        self.config = config
        place = ServerPlace.of(config.server())
        place = place if at is None else place._replace(at=at)
        self.base, self.at, self.here = place
        self._world = place.world
        self.client = Client(place.world, config.credentials(), seconds)

    def url(self, path: str) -> str:
        """Of a workspace."""
        return f"{self._world}{CLUSTERS}{path}"

    def commit(self, rev: str, path: str) -> str:
        """The id of the commit that a revision is, as the server knows it. `path`: the workspace that is to be read
        there. Raises PluginError."""
        answer = Session(self.config, rev).client.get(f"{CLUSTERS}{path}/version")
        if answer.status != 200:
            raise answer.refusal()
        if not answer.commit:
            raise PluginError("this server reads no commits")
        return answer.commit

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
            cluster = annotations.get("kcp.io/cluster", "")
            return ShownWorkspace(annotations.get("kcp.io/path", path), type_, cluster, self.at)
        if answer.status == 403 and self.client.get(f"{CLUSTERS}{path}/apis").status == 200:
            # May be there but not read what it is.
            return ShownWorkspace(path, at=self.at)
        parent, _, name = path.rpartition(":")
        # What is not there is denied like what one may not see; who may read the parent is told.
        if answer.status == 403 and parent and self.client.get(f"{CLUSTERS}{parent}{WORKSPACES}/{name}").status == 404:
            raise MissingWorkspace(f'workspace "{path}" not found')
        raise answer.denial(path)

    def current(self) -> ShownWorkspace:
        self.within("")
        return self.look_up(self.here)

    def path(self) -> str:
        """Of the current workspace, looked up where the URL holds a logical cluster's name."""
        return self.here if is_path(self.here) else self.current().path


def from_root(path: str) -> bool:
    return path == "root" or path.startswith("root:")


def is_path(text: str) -> bool:
    """Whether this is no logical cluster's name."""
    return text == "root" or ":" in text

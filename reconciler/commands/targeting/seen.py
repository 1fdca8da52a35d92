"""Sync targets as the server tells of them, to whoever asks: `treeplane target list` and `describe`, and what `remove`
has to know. What the user may not read is said to be not known.

Asked by the plugin's session, so as whom and where the kubeconfig says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from apiserver.model import clock, conditions, marks
from reconciler.commands.failure import Failure
from reconciler.controllers.targets import CREDENTIALS
from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.session import CLUSTERS, Session
from reconciler.syncing.lifetime import end_told

Object = dict[str, Any]

_TARGETS = "/apis/workload.kcp.io/v1alpha1/synctargets"
_PLACEMENTS = "/apis/scheduling.kcp.io/v1alpha1/placements"
_NAMESPACES = "/api/v1/namespaces"
_PAGE = "500"


class SeenNamespace(NamedTuple):
    """A namespace that a target has copies of, or may have."""

    workspace: str
    namespace: str


class SeenPlacement(NamedTuple):
    """`leaving`: it has moved away, and its copies are still there."""

    workspace: str
    name: str
    leaving: bool


class TargetSeen(NamedTuple):
    """`placements`, `namespaces`: what runs there; None where the user may not read that."""

    workspace: str
    value: Object
    placements: list[SeenPlacement] | None = None
    namespaces: list[SeenNamespace] | None = None

    @property
    def name(self) -> str:
        return str(self.value["metadata"]["name"])

    @property
    def key(self) -> str:
        """By which everything else names it, "" where the server has not said."""
        return str((self.value["metadata"].get("labels") or {}).get(marks.TARGET_KEY) or "")

    def condition(self, kind: str) -> Object:
        found = conditions.get((self.value.get("status") or {}).get("conditions"), kind)
        return found or {}

    @property
    def ready(self) -> str:
        return str(self.condition("Ready").get("status") or "Unknown")

    @property
    def taken(self) -> str:
        """Whether it takes anything new, or is being emptied."""
        spec = self.value.get("spec") or {}
        try:
            emptied = bool(spec.get("evictAfter")) and clock.parse(spec["evictAfter"]).timestamp() <= time.time()
        except (ValueError, TypeError):
            emptied = False
        return "evicting" if emptied else "cordoned" if spec.get("unschedulable") else ""

    @property
    def ends(self) -> str:
        """When its credentials end, "" where that is not known."""
        return end_told(str(self.condition(CREDENTIALS).get("message") or ""))

    @property
    def is_empty(self) -> bool | None:
        """None: it is not known."""
        if self.placements is None or self.namespaces is None:
            return None
        return not self.placements and not self.namespaces


class TargetsSeen:
    """`workspace`: the only one that is looked at, "" for all."""

    def __init__(self, kubeconfig: str = "", workspace: str = "") -> None:
        """Raises Failure."""
        self._only = workspace
        self._paths: dict[str, str] = {}
        try:
            self._session = Session(KubeconfigFiles.load(kubeconfig))
        except PluginError as error:
            raise Failure(str(error), "--kubeconfig names another, or $KUBECONFIG") from error

    def all(self) -> list[TargetSeen]:
        """With their placements."""
        found = self._targets()
        placements = self._everywhere(_PLACEMENTS)
        return [TargetSeen(each.workspace, each.value, self._placed(each, placements)) for each in found]

    def find(self, name: str) -> TargetSeen:
        """With all that runs there. Raises Failure where there is none of that name, or several."""
        found = self.maybe(name)
        if found is None:
            raise Failure(f"there is no sync target {name}", "treeplane target list shows which there are", 2)
        return found

    def maybe(self, name: str) -> TargetSeen | None:
        found = [each for each in self._targets() if each.name == name]
        if len(found) > 1:
            where = ", ".join(each.workspace for each in found)
            raise Failure(f"several workspaces have a sync target {name}: {where}", "name one: --workspace PATH", 2)
        if not found:
            return None
        [target] = found
        namespaces = self._everywhere(_NAMESPACES)
        placements = self._placed(target, self._everywhere(_PLACEMENTS))
        return target._replace(placements=placements, namespaces=self._running(target, namespaces))

    def _targets(self) -> list[TargetSeen]:
        if self._only:
            found, status = self._listed(f"{CLUSTERS}{self._only}{_TARGETS}")
            if found is None:
                raise Failure(f"{self._only}: {_said(status)}", "name a workspace that has sync targets", 2)
            return [TargetSeen(self._only, each) for each in found]
        found, status = self._listed(f"{CLUSTERS}*{_TARGETS}")
        if found is None and self._session.here:
            path = self._session.path()
            found, status = self._listed(f"{CLUSTERS}{path}{_TARGETS}")
        if found is None:
            raise Failure(
                f"sync targets cannot be listed: {_said(status)}", "name a workspace that has some: --workspace PATH"
            )
        return sorted((TargetSeen(self._path(each), each) for each in found), key=lambda t: (t.workspace, t.name))

    def _placed(self, target: TargetSeen, placements: Iterable[Object] | None) -> list[SeenPlacement] | None:
        if placements is None:
            return None
        key, out = target.key, []
        for each in placements:
            said = each["metadata"].get("annotations") or {}
            leaving = key in str(said.get(marks.LEAVING) or "").split(",")
            if key and (said.get(marks.SYNC_TARGET) == key or leaving):
                out.append(SeenPlacement(self._path(each), each["metadata"]["name"], leaving))
        return sorted(out)

    def _running(self, target: TargetSeen, namespaces: Iterable[Object] | None) -> list[SeenNamespace] | None:
        if namespaces is None:
            return None
        key = target.key
        here = [n for n in namespaces if key and key in _annotation(n, marks.RUNS_ON).split(",")]
        return sorted(SeenNamespace(self._path(each), each["metadata"]["name"]) for each in here)

    def _everywhere(self, what: str) -> list[Object] | None:
        return self._listed(f"{CLUSTERS}*{what}")[0]

    def _listed(self, path: str) -> tuple[list[Object] | None, int]:
        """All of a list; None with the status where there is none for this user."""
        out: list[Object] = []
        token = ""
        try:
            while True:
                answer = self._session.client.get(path, {"limit": _PAGE, "continue": token})
                if answer.status != 200:
                    return None, answer.status
                out += answer.object.get("items") or []
                token = str((answer.object.get("metadata") or {}).get("continue") or "")
                if not token:
                    return out, 200
        except PluginError as error:
            raise Failure(str(error)) from error

    def _path(self, obj: Object) -> str:
        """Of the workspace that an object is in; its logical cluster's name where the user may not look."""
        cluster = _annotation(obj, marks.CLUSTER)
        if cluster not in self._paths:
            try:
                self._paths[cluster] = self._session.look_up(cluster).path
            except PluginError:
                self._paths[cluster] = cluster
        return self._paths[cluster]


def _annotation(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(name) or "")


def _said(status: int) -> str:
    return {401: "the server does not know who you are", 403: "you may not", 404: "there are none"}.get(
        status, f"the server answered {status}"
    )

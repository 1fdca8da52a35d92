"""`treeplane reconcile-now`: has a server look at its repository, or a workspace's source, now, and says what it found.

A ring, and then looks at what stands written down of the look that followed it (apiserver/endpoints/reconciling).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from apiserver.model.commits import shortened
from apiserver.model.counts import counted
from apiserver.model.paths import ROOT
from apiserver.model.plaintext import plain
from reconciler.commands.failure import Failure
from reconciler.commands.statuswords import DATA
from reconciler.plugin.client import Answer
from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.session import CLUSTERS, Session

_ID = 10
_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class LookFound:
    """`workspace`: whose source was looked at; root: the fleet's repository. `head`: of the branch; `served`: the
    commit that is served; `wrong`: why that is not the head, or why nobody could look; `held`: how many workspaces are
    held, or errors that hold the one. `answered`: whether there was a look within the time."""

    workspace: str
    answered: bool = False
    head: str = ""
    served: str = ""
    wrong: str = ""
    held: int = 0

    @property
    def good(self) -> bool:
        return self.answered and not self.wrong and not self.held

    def told(self, form: str) -> str:
        return f"{plain(self._words())}\n" if form == "table" else DATA[form](asdict(self))

    def _words(self) -> str:
        what = "the repository" if self.workspace == ROOT else f"the source of {self.workspace}"
        if not self.answered:
            return f"{what} is asked to be looked at, and that is not done yet{self.wrong and ': '}{self.wrong}"
        head = f", the branch is at {self.head[:_ID]}" if self.head else ""
        if self.wrong:
            return f"looked at {what}{head}, and {self.served[:_ID] or 'nothing'} is served: {self.wrong}"
        if self.held:
            some = counted(self.held, "workspace is held", "workspaces are held")
            holds = some if self.workspace == ROOT else "the workspace is held"
            return f"looked at {what}{head}: {holds}; `treeplane status` says why"
        return f"looked at {what}{head}, and that is served"


def reconcile_now(kubeconfig: str, path: str, seconds: float) -> LookFound:
    """`path`: of a workspace, "" for the fleet's repository. `seconds`: how long it waits, 0 not at all. Raises Failure
    where it may not be asked for, or cannot."""
    where = path or ROOT
    try:
        session = Session(KubeconfigFiles.load(kubeconfig), "")
        url = f"{CLUSTERS}{where}/reconcile"
        asked = float(_read(session.client.send("POST", url, {}), 202)["asked"])
        return _waited(lambda: _read(session.client.get(url), 200), where, asked, time.monotonic() + seconds)
    except PluginError as error:
        raise Failure(str(error)) from None


def _waited(look: Callable[[], dict[str, Any]], where: str, asked: float, until: float) -> LookFound:
    while True:
        found = look()
        looked = found["looked"]
        if looked is not None and looked["began"] >= asked:
            return LookFound(where, True, looked["head"], looked["served"], looked["wrong"], found["held"])
        if time.monotonic() >= until:
            way = ", ".join(shortened(commit, _ID) for commit in found["arriving"])
            return LookFound(where, wrong=f"{way} is being loaded" if way else "")
        time.sleep(_PAUSE)


def _read(answer: Answer, expected: int) -> dict[str, Any]:
    """Raises Failure."""
    if answer.status == 403:
        raise Failure(str(answer.refusal()), "it takes `post` and `get` on the URL /reconcile in that workspace")
    if answer.status != expected:
        raise Failure(str(answer.refusal()))
    return answer.object

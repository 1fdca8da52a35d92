"""A fleet, the server that holds it in threads of this process, and what every place says that speaks of the fleet.

For unit tests of what people are told: requests come in this thread, nobody listens on a port, no cluster is called.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from support.apifleet import WORKSPACES, ApiFleet

from apiserver.complaints.complaint import Complaints
from apiserver.endpoints.pushhooks import VERDICTS
from apiserver.metrics import fleet as metrics
from apiserver.scrape import fleet as scrape
from reconciler.commands import reconcilenow, statuswords
from reconciler.commands.beside import Beside
from reconciler.commands.holder import Holder
from reconciler.commands.installation import Installation
from reconciler.commands.lines import HappenedLines
from reconciler.commands.lookout import Lookout
from reconciler.commands.observer import Observer
from reconciler.commands.report import Report
from reconciler.commands.roles import ALL, Roles
from reconciler.commands.running import _Run
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Start
from reconciler.commands.station import Station
from reconciler.commands.teller import Teller
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import Heads, Mirror

Object = dict[str, Any]
_NORMAL = (metrics.LOADED, metrics.WORKSPACES)
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Said(NamedTuple):
    """What each place says at a time.

    `livez`, `readyz`: verbose. `followed`: the condition FleetFollowed of root; `applied`, `own`: CommitApplied of the
    Workspace root:a and of its LogicalCluster. `status`: `treeplane status`; `asked`: `treeplane reconcile-now`.
    `pushed`: the answer to the push of the branch's head, "" where none came; `up`: the lines that were printed so far.
    `commit`, `held`, `lag`: cells of root:a in `kubectl get workspaces`. `metrics`: those that are not 0 and say that
    something is wrong, in their order.
    """

    livez: str
    readyz: str
    followed: str
    applied: str
    own: str
    status: str
    asked: str
    pushed: str
    up: str
    commit: str
    held: str
    lag: str
    metrics: str


class CutMirror(Mirror):
    """A mirror whose source can be out of reach."""

    cut = False

    def refresh_source(self) -> Heads:
        if self.cut:
            raise RepositoryUnreadable("the repository does not answer")
        return super().refresh_source()


class HeardReport(Report):
    """Events that `up` would read."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Object] = []

    def say(self, event: str, **facts: Any) -> None:
        self.events.append({"event": event, **facts})


class Places:
    """Of a fleet that nobody has to hold. `report`: what its server told `up`."""

    def __init__(self, fleet: ApiFleet) -> None:
        self.fleet, self.report = fleet, HeardReport()

    def said(self, seconds: float = 5.0) -> Said:
        """`seconds`: how long `reconcile-now` waits."""
        asked, row = self._asked("root", seconds).told("table"), self._row()
        status = Complaints.read(orjson.loads(self.fleet.ask("GET", "/clusters/root/status").body))
        return Said(
            self._text("/livez?verbose"),
            self._text("/readyz?verbose"),
            _condition(self._cluster("root"), "FleetFollowed"),
            _condition(self.fleet.call("GET", "root", f"{WORKSPACES}/a").json, "CommitApplied"),
            _condition(self._cluster("root:a"), "CommitApplied"),
            statuswords.told(status, "table"),
            asked,
            self.pushed(),
            "\n".join(self.lines()),
            *(str(row[name] or "") for name in ("Commit", "Held", "Lag")),
            self._metrics(),
        )

    def _metrics(self) -> str:
        with self.fleet.store.view() as view:
            found = [(m.name, labels) for m, labels, value in scrape.read(view) if value and m not in _NORMAL]
        return " ".join(name + "".join(f"={label}" for label in labels) for name, labels in found)

    def pushed(self, commit: str = "") -> str:
        file = Path(self.fleet.repo.path) / VERDICTS / (commit or self.fleet.repo.head)
        # The first line says to the server what became of it.
        return "".join(file.read_text().splitlines(keepends=True)[1:]) if file.exists() else ""

    def lines(self) -> list[str]:
        run: Any = _Run.__new__(_Run)
        said = list[str]()
        run._say, run._lines = said.append, _AllLines()
        for event in [*self.report.events]:
            if event["event"] == "loaded":
                said.append(f"loaded {event['workspaces']} workspaces at {event['commit'][:10]}")
            elif event["event"] != "progress":
                run._tell(event, None, Path())
        return said

    def _asked(self, path: str, seconds: float) -> reconcilenow.LookFound:
        url = f"/clusters/{path}/reconcile"
        asked = self.fleet.ask("POST", url).json["asked"]
        return reconcilenow._waited(lambda: self.fleet.ask("GET", url).json, path, asked, time.monotonic() + seconds)

    def _cluster(self, path: str) -> Object:
        found: Object = self.fleet.call("GET", path, "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster").json
        return found

    def _text(self, path: str) -> str:
        return self.fleet.ask("GET", f"/clusters/root{path}").body.decode()

    def _row(self) -> dict[str, Any]:
        found = self.fleet.call("GET", "root", f"{WORKSPACES}/a", accept=_TABLE).json
        names = [each["name"] for each in found["columnDefinitions"]]
        return dict(zip(names, found["rows"][0]["cells"], strict=True))


class Speaking(Places):
    """With its server. `observes`: another server holds the fleet; else this one does. Call `end`."""

    def __init__(self, fleet: ApiFleet, patch: pytest.MonkeyPatch, *, observes: bool = False) -> None:
        for step in ("start", "stop"):  # of loops, which need a server
            patch.setattr(Beside, step, lambda self: None)
        super().__init__(fleet)
        self.mirror = CutMirror(fleet.directory, str(fleet.repo.path), fleet.repo.branch, "treeplane/status")
        teller = Teller(self.report)
        settings = ReconcileSettings(
            fleet.directory, fleet.keys, source=str(fleet.repo.path), url="u", local_url="u", hosted=not observes
        )
        self._lookout, self._roles = Lookout(self.mirror, teller), Roles(fleet.directory)
        assert self._roles.lock()
        handles = self._roles.handles(fleet.store)
        station = Station(settings, handles, self.mirror, self._lookout, teller, self._roles)
        installation = Installation(fleet.directory)
        start = Start(settings, self.mirror, installation, teller, first=False)
        beginning = start.begin(self.mirror.refresh())
        assert bool(beginning.holder) == observes
        self.made = Observer(station, start) if observes else Holder(station, installation)
        self._thread = threading.Thread(target=self.made.run, args=(beginning,), daemon=True)  # type: ignore[arg-type]
        self._thread.start()

    def end(self) -> None:
        self._lookout.stop.set()
        self._lookout.wake.set()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._roles.lend(ALL)

    def look(self) -> None:
        """Whoever follows the branch looks, as it does every few seconds."""
        self._lookout.wake.set()


class _AllLines(HappenedLines):
    """As one who waits a second between any two things would see them."""

    def line(self, sort: str, text: str, now: float) -> str:
        return text


def _condition(obj: Object, kind: str) -> str:
    found = next((each for each in obj["status"]["conditions"] if each["type"] == kind), None)
    return f"{found['status']} {found['reason']}: {found.get('message', '')}" if found is not None else ""

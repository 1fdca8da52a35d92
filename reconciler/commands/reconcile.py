"""The reconciler's process: git in, store, clusters and status branch out. `up` starts one for a data directory."""

from __future__ import annotations

import logging
import signal
import sys
from dataclasses import replace
from pathlib import Path

from apiserver import heap
from apiserver.auth.keys import KeysError
from apiserver.logs.records import begin
from apiserver.metrics import place
from apiserver.parent import end_with_parent
from apiserver.registry import tree
from apiserver.storage.lmdb_soundness import NewerStore
from apiserver.storage.protocol import NoSpace, Store
from reconciler.commands import tasks
from reconciler.commands.dataplace import of_disk
from reconciler.commands.holder import Holder
from reconciler.commands.installation import Installation
from reconciler.commands.lookout import Lookout, StatusSaid
from reconciler.commands.mainstore import open_for
from reconciler.commands.observer import Observer
from reconciler.commands.pulse import Pulse, end_without
from reconciler.commands.pushes import ask
from reconciler.commands.rendering import renderer_of_server
from reconciler.commands.report import Report
from reconciler.commands.rest import Rest
from reconciler.commands.roles import ALL, REST, Handles, Roles, parse
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.source import guard
from reconciler.commands.start import Beginning, Start, StartRefused, refuse_incomplete
from reconciler.commands.station import Station
from reconciler.commands.teller import Teller
from reconciler.commands.told import heard
from reconciler.layout.fleet import STATUS_BRANCH
from reconciler.repository.errors import RepositoryError
from reconciler.repository.library import bound_cache, set_fsync
from reconciler.repository.mirror import Mirror
from reconciler.saving.archive import BadBackup
from reconciler.saving.unpushed import UNPUSHED, TakingIn

log = logging.getLogger(__name__)

_LAST = 8.0
"""Seconds at the end for a source that does not answer."""
_GRACE = 30.0
"""Seconds for an end in order after the parent's."""
_AGAIN = 1.0


class Reconciler:
    """Call `run`; `stop` from any thread ends it."""

    def __init__(self, settings: ReconcileSettings, report: Report, roles: Roles) -> None:
        """`roles`: this process has the locks of all."""
        self._settings, self._roles = settings, roles
        self._teller = Teller(report)
        self._renderer = renderer_of_server(settings.data_dir, settings.rendering_kubectl, settings.rendering_helm)
        self._store: Store | None = None
        self._mirror = Mirror(
            settings.data_dir,
            settings.source,
            settings.branch,
            STATUS_BRANCH,
            access=settings.access,
            folder=settings.path,
        )
        said = StatusSaid(settings.status_repository, settings.new_identities, settings.command)
        self._lookout = Lookout(self._mirror, self._teller, said, TakingIn(self._mirror, settings.data_dir / UNPUSHED))

    def stop(self) -> None:
        self._mirror.close(_LAST)
        self._lookout.stop.set()
        self._lookout.wake.set()

    def look(self) -> None:
        """See Roles.look."""
        if self._store is not None:
            self._roles.look(self._store)

    def run(self) -> None:
        set_fsync(self._settings.sync_writes)
        bound_cache()
        self._mirror.clear_locks()
        installation = Installation(self._settings.data_dir)
        first = not self._settings.restarted
        try:
            refuse_incomplete(self._mirror)
            while not self._lookout.stop.is_set():
                start = Start(self._settings, self._mirror, installation, self._teller, first=first)
                beginning = self._begin(start)
                if beginning is None:
                    return
                handles = self._open(beginning)
                anew = not tree.fleet(handles.loading).loaded and self._begins_anew(start, beginning)
                self._run(handles, start, beginning, installation, anew=anew)
                first = False  # it has lost the fleet, which it does not take back by itself
        except (StartRefused, KeysError, NewerStore, BadBackup) as error:
            self._refuse(str(error))
        except Exception as error:
            self._failed(error)
        finally:
            store, self._store = self._store, None
            if store is not None:
                store.close()
            self._renderer.close()

    def _failed(self, error: Exception) -> None:
        """A disk that is full or read-only. A server that just starts ends; one that served goes on doing so, and this
        process is started again, later each time."""
        failure = of_disk(error, self._settings.data_dir)
        if failure is None:
            raise error
        log.error("%s", failure.message)
        if self._settings.restarted or (self._store is not None and tree.fleet(self._store).loaded):
            what = failure.message.partition("\n")[0]
            self._teller.trouble(
                f"{what}: what is served goes on, and the branch is followed again once that is mended"
            )
            raise SystemExit(failure.exit_code) from error
        self._refuse(failure.message)

    def _refuse(self, text: str) -> None:
        self._teller.refused(text)
        self._lookout.stop.wait()  # an end of this process would be taken for a crash

    def _run(
        self, handles: Handles, start: Start, beginning: Beginning, installation: Installation, *, anew: bool
    ) -> None:
        settings, renders = self._settings, self._renderer
        station = Station(settings, handles, self._mirror, self._lookout, self._teller, self._roles, renders)
        if beginning.holder:
            if self._settings.hosted:
                ask(Path(self._settings.source), on=False)  # it is not this server's to say what is taken
            Observer(station, start).run(beginning)
        else:
            Holder(station, installation, anew=anew).run(beginning)

    def _open(self, beginning: Beginning) -> Handles:
        if self._store is None:
            self._store = self._opened(beginning)
        while True:
            try:
                return self._roles.handles(self._store)
            except NoSpace as error:  # reads are served meanwhile
                self._teller.trouble(f"{error}: the branch is followed again once there is room")
                if self._lookout.stop.wait(_AGAIN):
                    raise

    def _opened(self, beginning: Beginning) -> Store:
        directory, sync = self._settings.data_dir / "store", self._settings.sync_writes
        store, said = open_for(directory, beginning, sync=sync, loading=lambda s: self._roles.handles(s).loading)
        if said:
            self._teller.note(said)
        return store

    def _begins_anew(self, start: Start, beginning: Beginning) -> bool:
        """See Start; waits for a source that does not answer."""
        while not self._lookout.stop.is_set():
            try:
                return start.begins_anew(beginning)
            except RepositoryError as error:
                self._teller.trouble(str(error))
                self._lookout.wake.wait(_AGAIN)
        return False

    def _begin(self, start: Start) -> Beginning | None:
        """None at the end of the process."""
        while (heads := self._lookout.first()) is not None:
            settings = self._settings
            guard(settings.source, settings.data_dir, settings.branch, self._mirror.status_branch)
            try:
                return start.begin(heads)
            except RepositoryError as error:
                self._teller.trouble(str(error))
                self._lookout.wake.wait(_AGAIN)
        return None


def main(given: str = ",".join(ALL)) -> None:
    """Settings come as JSON on standard input (told), when all is loaded. `given`: the roles of this process: all of
    them, loading alone, which lends the others, or those others. Raises ValueError for any other."""
    works = parse(given)
    heap.share()
    begin(tasks.RECONCILER)
    # Many threads that wait, one that works: it lets go of the interpreter at every read of git and of the store, and
    # would wait five milliseconds each time for a loop that is catching up with the log.
    sys.setswitchinterval(0.0005)
    heap.settle()
    settings = ReconcileSettings.from_json(heard(sys.stdin.fileno()))
    Path(settings.data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    end_with_parent(sys.stdin.fileno(), _GRACE)
    place.begin(Path(settings.data_dir), tasks.REST if works == REST else tasks.RECONCILER)
    report = Report()
    report.pass_on(logging.getLogger("apiserver.storage"))  # a store set aside: maybe by an API worker, maybe here
    pulse = Pulse(report)
    pulse.start()
    reconciler: Reconciler | Rest
    if works == REST:
        roles = Roles(settings.data_dir, end_without(report), REST)
        reconciler = Rest(settings, report, roles)
    else:
        if works != ALL:
            settings = replace(settings, roles="apart")
        roles = Roles(settings.data_dir, end_without(report))
        # What is left of a server that crashed ends first.
        roles.lock(lambda text: report.say("trouble", text=text))
        reconciler = Reconciler(settings, report, roles)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: reconciler.stop())
    pulse.look = reconciler.look
    reconciler.run()


if __name__ == "__main__":
    main(*sys.argv[1:])

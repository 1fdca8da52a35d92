"""One run of `treeplane up`, which has started a reconciler's process already.

Binds the port, makes the keys, resolves the repository, starts the API workers and the reconciler, shows the first
load's progress, and says what to type next.
"""

from __future__ import annotations

import itertools
import json
import queue
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from apiserver.auth.givencertificates import GivenCertificates
from apiserver.launch import spawn
from apiserver.logs.outlets import Outlets
from apiserver.metrics import place
from apiserver.metrics.machine import ENDS
from apiserver.model.brief import brief
from apiserver.model.commits import shortened
from apiserver.model.counts import counted
from apiserver.model.redaction import redact
from apiserver.options import values
from apiserver.proxyprotocol import Proxies
from apiserver.settings import ServerSettings, listens_on_all
from reconciler.commands import tasks, words
from reconciler.commands.again import typed
from reconciler.commands.ahead import ReconcilerAhead
from reconciler.commands.children import Children, spawn_viewer, start_reconciler
from reconciler.commands.dataplace import only_one, require_place, require_recovered
from reconciler.commands.failure import Failure
from reconciler.commands.journal import keep
from reconciler.commands.lines import HappenedLines
from reconciler.commands.preparing import PreparedServer, check_files, check_store, prepare
from reconciler.commands.progress import ProgressBar
from reconciler.commands.roles import REST
from reconciler.commands.servedat import ServedAt
from reconciler.commands.settings import ReconcileSettings, UpSettings
from reconciler.commands.told import tell
from reconciler.plan.happened import HELD, MENDED

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN, _WIDTH = 20, 1000
"""Workspaces of which it is told at a start why they are held; characters of a line about one."""


def run(settings: UpSettings, outlets: Outlets, ahead: ReconcilerAhead) -> None:
    """Returns after a clean stop; raises Failure. `ahead`: that process."""
    common = settings.common
    check_files(settings)
    require_place(common.data_dir)
    with only_one(common.data_dir):
        require_recovered(common.data_dir)
        check_store(ServerSettings(common.data_dir, common.keys_dir).store_dir)
        numbers = place.processes(common.data_dir / place.DIRECTORY)
        left = [number for name, number in numbers.items() if name != tasks.UP]
        place.empty(common.data_dir)
        place.begin(common.data_dir, tasks.UP)
        _Run(settings, prepare(settings, left), outlets, ahead).run()


class _Run:
    """One run: children, their reports, and what is printed."""

    def __init__(
        self, settings: UpSettings, prepared: PreparedServer, outlets: Outlets, ahead: ReconcilerAhead
    ) -> None:
        self._settings = settings
        self._server, self._source = prepared.server, prepared.source
        self._certificates, self._new_keys = prepared.certificates, prepared.new_keys
        self._listener = prepared.listener
        self._outlets, self._ahead = outlets, ahead
        self._console: Console | None = None
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._children = Children(ended=self._ended)
        self._lines = HappenedLines()
        self._stopping = self._introduced = False
        self._refused = ""

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        kubeconfig = self._settings.starting.kubeconfig or self._settings.common.data_dir / "admin.kubeconfig"
        try:
            notes = self._certificates.write_kubeconfig(kubeconfig, self._server.url)
        except ValueError as error:
            raise Failure(str(error), f"move {kubeconfig} away") from error
        authority = self._certificates.authority(self._server.url)
        vouching, log_file = str(authority.resolve()) if authority else "", self._settings.logging.log_file
        log, given = str(log_file.absolute()) if log_file else "", _given(self._server)
        served = ServedAt(self._server.url, self._server.local_url, vouching, log, given)
        served.write(self._settings.common.data_dir)
        if self._new_keys and (self._settings.common.data_dir / "store").exists():
            self._say(
                f"{self._certificates.keys.directory} is new, since it had no keys: kubeconfigs, clones and tokens of "
                "before are refused. To go on with the old ones, stop, put them there, and start again"
            )
        for note in (*notes, *self._source.notes):
            self._say(note)
        if _among_proxies(self._server, self._listener) and not self._server.external_url:
            self._say(
                f"connections from this machine to {self._server.local_url} have to begin with a PROXY header, which "
                "kubectl and git do not send: give --external-url, or --proxy-protocol-network another address of the "
                "proxy's"
            )
        self._say(f"serving {redact(self._source.location)} ({self._settings.common.branch}) at {self._server.url}")
        try:
            self._start()
            self._watch(kubeconfig)
        finally:
            self._children.stop()
            self._listener.close()
        if self._refused:
            raise Failure(self._refused)
        self._say("stopped; the next start continues where this one was")

    def _start(self) -> None:
        told = self._told = ReconcileSettings(
            **values(self._settings.common, self._settings.access, self._settings.reconciling),
            source=self._source.location,
            url=self._server.url,
            local_url=self._server.local_url,
            among_proxies=_among_proxies(self._server, self._listener),
            hosted=self._source.hosted is not None,
            new_keys=self._new_keys,
            command=typed(self._settings.starting.command or sys.argv),
        )
        starts = itertools.count()

        def reconciler() -> Any:
            process = self._ahead.take()
            if process is None:
                with self._outlets.child(tasks.RECONCILER) as outlet:
                    process = start_reconciler(outlet)
            tell(process, replace(told, restarted=next(starts) > 0).to_json())
            return process

        def viewer() -> Any:
            with self._outlets.child(tasks.VIEWER) as outlet:
                return spawn_viewer(told.to_json(), outlet)

        self._children.add("the reconciler", reconciler, self._heard, task=tasks.RECONCILER)
        for number in range(self._settings.starting.workers):
            task = f"api-{number + 1}"
            self._children.add(f"API worker {number + 1}", partial(self._worker, task), task=task)
        self._children.add("the reader of commits", viewer, task=tasks.VIEWER)

    def _worker(self, task: str) -> Any:
        with self._outlets.child(task) as outlet:
            return spawn(self._server, self._listener, task, outlet)

    def _start_rest(self) -> None:
        """The process to which the reconciler lends roles; it is started once, and again when it ends."""
        name, told = f"the reconciler of {', '.join(REST)}", self._told.to_json()

        def rest() -> Any:
            with self._outlets.child(tasks.REST) as outlet:
                process = start_reconciler(outlet, ",".join(REST))
            tell(process, told)
            return process

        if all(child.name != name for child in self._children.children):
            self._children.add(name, rest, self._heard, task=tasks.REST)

    def _ended(self, task: str) -> None:
        place.ended(self._settings.common.data_dir, task)
        ENDS.add(task)

    def _watch(self, kubeconfig: Path) -> None:
        from rich.console import Console  # noqa: PLC0415 - while the children start, who wait for nothing here

        self._console = Console(stderr=False, soft_wrap=True, highlight=False)
        with ProgressBar(self._console) as progress:
            while not self._stopping:
                for text in self._children.look():
                    self._say(f"{text}; see {self._settings.logging.log_file or 'the log above'}")
                for text in self._certificates.look(kubeconfig, self._server.url):
                    self._say(text)
                if counted := self._lines.due(time.monotonic()):
                    self._say(counted)
                try:
                    event = self._events.get(timeout=0.5)
                except queue.Empty:
                    continue
                self._tell(event, progress, kubeconfig)

    def _tell(self, event: dict[str, Any], progress: ProgressBar, kubeconfig: Path) -> None:
        match event["event"]:
            case "progress":
                progress.at(event["done"])
            case "loaded":
                progress.finish()
                at = shortened(event["commit"], 10)
                self._say(f"loaded {counted(event['workspaces'], 'workspace')} at {at} in {event['seconds']} s")
                for path, problems in [*event["held"].items()][:_SHOWN]:
                    self._say(self._held_line(path, problems))
                if len(event["held"]) > _SHOWN:
                    more = counted(len(event["held"]) - _SHOWN, "more is", "more are")
                    self._say(f"and {more} held back: kubectl ws tree says which")
                if not self._introduced:  # the reconciler may be started again
                    self._introduced = True
                    self._say("in a second terminal:\n" + words.next_steps(kubeconfig.resolve(), self._clone_line()))
            case "held":
                self._happened(HELD, self._held_line(event["workspace"], event["problems"]))
            case "mended":
                self._happened(MENDED, f"{event['workspace']} is held back no more")
            case "happened":
                self._happened(event["sort"], event["text"])
            case "trouble" | "note":
                self._say(event["text"])
            case "lends":
                self._start_rest()
            case "refused":
                self._refused, self._stopping = event["text"], True

    def _clone_line(self) -> str:
        url, certificates = self._server.url, self._certificates
        return words.clone_line(url, certificates.keys, certificates.authority(url)) if self._source.hosted else ""

    def _happened(self, sort: str, text: str) -> None:
        if line := self._lines.line(sort, text, time.monotonic()):
            self._say(line)

    @staticmethod
    def _held_line(path: str, problems: list[str]) -> str:
        """The condition lists all that is wrong, however much."""
        return f"{path} is held back: {brief('; '.join(problems), _WIDTH)}"

    def _heard(self, line: bytes) -> None:
        with suppress(ValueError):
            event = json.loads(line)
            if event["event"] != "alive":
                self._events.put(event)

    def _say(self, text: str) -> None:
        text = redact(text)  # what is wrong with a file is told with what stands there
        if self._console is None:
            click.echo(text)
        else:
            self._console.print(text, markup=False)
        keep(self._settings.logging, text)

    def _on_signal(self, *_: object) -> None:
        self._stopping = True


def _given(server: ServerSettings) -> dict[str, str]:
    given = GivenCertificates.of(server)
    return {each.name: str(file) for each in fields(given) if (file := getattr(given, each.name)) is not None}


def _among_proxies(server: ServerSettings, listener: socket.socket) -> bool:
    """Whether this machine's own connections come from where `--proxy-protocol-network` has the proxies."""
    bound = listener.getsockname()[0]
    host = urlsplit(server.local_url).hostname if listens_on_all(bound) else bound
    return Proxies(server.proxy_networks).have(host or "")

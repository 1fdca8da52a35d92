"""`treeplane up`: serve and reconcile until Ctrl-C.

Binds the port, makes the keys, resolves the repository, starts the API workers and the reconciler, shows the first
load's progress, and says what to type next.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import queue
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console

from apiserver.auth.deliveries import secret_file
from apiserver.auth.files import private_directory, write_private
from apiserver.auth.keys import KeysError
from apiserver.auth.pki_clients import authorities_in
from apiserver.auth.tokens import TokenFile
from apiserver.launch import listen, spawn
from apiserver.model.brief import brief
from apiserver.model.commits import shortened
from apiserver.options import values
from apiserver.proxyprotocol import Proxies
from apiserver.settings import ServerSettings, Serving, listens_on_all
from reconciler.commands import addresses, forgeplaces, onefile, words
from reconciler.commands.again import typed
from reconciler.commands.certificates import Certificates
from reconciler.commands.children import Children, spawn_reconciler, spawn_viewer
from reconciler.commands.failure import BUSY, Failure
from reconciler.commands.lines import HappenedLines
from reconciler.commands.ports import holder
from reconciler.commands.progress import ProgressBar
from reconciler.commands.roles import REST
from reconciler.commands.servedat import ServedAt
from reconciler.commands.settings import ReconcileSettings, Reconciling, UpSettings
from reconciler.commands.source import Source, check, resolve
from reconciler.forges.errors import NotSaid
from reconciler.plan.notices import HELD, MENDED
from reconciler.repository.access import Reaching, RemoteAccess
from reconciler.repository.errors import RepositoryError, redact
from reconciler.repository.source import is_url
from reconciler.signatures.own import CommitKey

_SHOWN, _WIDTH = 20, 1000
"""Workspaces of which it is told at a start why they are held; characters of a line about one."""


def up(settings: UpSettings) -> None:
    """Returns after a clean stop; raises Failure."""
    common = settings.common
    _check_files(settings.serving)
    _check_told(settings.reconciling)
    check(settings.starting.repository, common.data_dir)
    private_directory(common.data_dir)
    with _only_one(common.data_dir):
        onefile.keep(ServerSettings(common.data_dir, common.keys_dir).plugin_file)
        address = settings.starting.listen
        listener = _listen(address.host, address.port)
        certificates = _certificates(settings)
        port = listener.getsockname()[1]
        server = ServerSettings(**values(common, settings.serving), host=address.host, port=port)
        urls = [server.url, server.local_url]
        repository = _remembered(settings)
        _check_access(repository, settings.access)
        source = resolve(repository, common.data_dir, common.branch, urls, _commit_key(settings).sign)
        server = replace(server, git_dir=source.hosted)
        _Run(settings, server, source, certificates, listener).run()


class _Run:
    """One run: children, their reports, and what is printed."""

    def __init__(
        self,
        settings: UpSettings,
        server: ServerSettings,
        source: Source,
        certificates: Certificates,
        listener: socket.socket,
    ) -> None:
        self._settings = settings
        self._server = server
        self._source = source
        self._certificates = certificates
        self._listener = listener
        self._console = Console(stderr=False, soft_wrap=True, highlight=False)
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._children = Children()
        self._lines = HappenedLines()
        self._stopping = False
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
        ServedAt(self._server.url, self._server.local_url, str(authority.resolve()) if authority else "").write(
            self._settings.common.data_dir
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
        file = self._settings.common.data_dir / "reconciler.log"
        log = self._log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        told = self._told = ReconcileSettings(
            **values(self._settings.common, self._settings.access, self._settings.reconciling),
            source=self._source.location,
            url=self._server.url,
            local_url=self._server.local_url,
            among_proxies=_among_proxies(self._server, self._listener),
            hosted=self._source.hosted is not None,
            command=typed(self._settings.starting.command or sys.argv),
        )
        for number in range(self._settings.starting.workers):
            self._children.add(f"API worker {number + 1}", lambda: spawn(self._server, self._listener))

        starts = itertools.count()

        def reconciler() -> Any:
            return spawn_reconciler(replace(told, restarted=next(starts) > 0).to_json(), log)

        self._children.add("the reconciler", reconciler, self._heard)
        self._children.add("the reader of commits", lambda: spawn_viewer(told.to_json(), log))

    def _start_rest(self) -> None:
        """The process to which the reconciler lends roles; it is started once, and again when it ends."""
        name, told = f"the reconciler of {', '.join(REST)}", self._told.to_json()
        if all(child.name != name for child in self._children.children):
            self._children.add(name, lambda: spawn_reconciler(told, self._log, ",".join(REST)), self._heard)

    def _watch(self, kubeconfig: Path) -> None:
        with ProgressBar(self._console) as progress:
            while not self._stopping:
                for text in self._children.look():
                    self._say(f"{text}; see {self._settings.common.data_dir / 'reconciler.log'}")
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
                self._say(f"loaded {event['workspaces']} workspaces at {at} in {event['seconds']} s")
                for path, problems in [*event["held"].items()][:_SHOWN]:
                    self._say(self._held_line(path, problems))
                if len(event["held"]) > _SHOWN:
                    self._say(f"and {len(event['held']) - _SHOWN} more are held back: kubectl ws tree says which")
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
        self._console.print(text, markup=False)

    def _on_signal(self, *_: object) -> None:
        self._stopping = True


@contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """One server for a data directory."""
    with (data_dir / "lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Failure(
                f"{data_dir} is in use by another treeplane up", "stop it, or choose another --data-dir", BUSY
            ) from error
        yield


def _check_files(serving: Serving) -> None:
    """Each worker would end on a file that cannot be read."""
    readers: tuple[tuple[str, Path | None, Callable[[Path], object]], ...] = (
        ("--token-auth-file", serving.token_auth_file, TokenFile),
        ("--client-ca-file", serving.client_ca_file, authorities_in),
        ("--webhook-secret-file", serving.webhook_secret_file, lambda file: secret_file(file).read()),
    )
    for option, file, read in readers:
        try:
            if file is not None:
                read(file)
        except (OSError, ValueError) as error:
            raise Failure(f"{option}: {error}", "mend the file") from error


def _check_access(repository: str, access: RemoteAccess) -> None:
    """With what a URL is reached has to fit it, and be nobody else's to read. Whether it is one says `resolve`."""
    try:
        if access.git_ca_file is not None:
            authorities_in(access.git_ca_file)
    except (OSError, ValueError) as error:
        raise Failure(f"--git-ca-file: {error}", "mend the file", 2) from error
    try:
        if is_url(repository):
            Reaching(repository, access).check()
    except RepositoryError as error:
        raise Failure(error.what, error.hint, 2) from error


def _among_proxies(server: ServerSettings, listener: socket.socket) -> bool:
    """Whether this machine's own connections come from where `--proxy-protocol-network` has the proxies."""
    bound = listener.getsockname()[0]
    host = urlsplit(server.local_url).hostname if listens_on_all(bound) else bound
    return Proxies(server.proxy_networks).have(host or "")


def _check_told(reconciling: Reconciling) -> None:
    """Who is told of commits has to be somebody."""
    try:
        forgeplaces.checked(reconciling)
    except NotSaid as error:
        raise Failure(error.text, error.hint, 2) from None


def _certificates(settings: UpSettings) -> Certificates:
    starting = settings.starting

    def names() -> list[str]:
        return addresses.names(starting.listen.host, settings.serving.external_url, starting.tls_sans)

    try:
        found = Certificates(
            settings.common.keys_dir, names, starting.certificate_seconds, copies=starting.serving_files
        )
    except KeysError as error:
        raise Failure(str(error)) from error
    if settings.serving.tls_cert_file or settings.serving.tls_private_key_file:
        from reconciler.commands.shown import shown  # noqa: PLC0415 - OpenSSL takes its time, and most have none

        found.shown = shown(settings.serving, found.keys, settings.common.data_dir / "serving-ca.crt")
    return found


def _commit_key(settings: UpSettings) -> CommitKey:
    """Here, so that one that cannot be used is told before anything starts."""
    try:
        return CommitKey.open(settings.common.keys_dir)
    except KeysError as error:
        raise Failure(str(error)) from error


def _listen(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise Failure(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        who = holder(port)
        by = f" by {who}" if who else ""
        raise Failure(
            f"{host}:{port} is taken{by}", "stop it, or choose another address with --listen HOST:PORT", BUSY
        ) from error


def _remembered(settings: UpSettings) -> str:
    """The repository; named once, it need not be named again."""
    file, text = settings.common.data_dir / "source", settings.starting.repository
    if text:
        if "://" not in text and Path(text).exists():
            text = str(Path(text).resolve())
        write_private(file, f"{text}\n".encode())
        return settings.starting.repository
    try:
        file.chmod(0o600)  # it may name a password
        return file.read_text().strip()
    except FileNotFoundError:
        raise Failure("no REPOSITORY given, and none was served from this data directory before",
                      "treeplane up REPOSITORY", 2) from None  # fmt: skip

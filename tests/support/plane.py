"""A running `treeplane up`, as a user has it: a process, a kubeconfig, a printed line to clone with.

For end-to-end tests and benchmarks. It uses nothing of the product's code, only what a user sees.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from realclusters import binaries
from realclusters.processes import Process, free_ports

READY_SECONDS = 60.0
SHARD_BASE = "shard-base"
COMMAND = Path(sys.executable).with_name("treeplane")


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would steer git past its settings: a hook's GIT_DIR, a proxy's
    GIT_SSL_CAINFO (which hides the CA that the clone carries), the user's own configuration; and without what would
    have every process compile all of Python's modules anew."""
    dropped = ("GIT_", "KUBECONFIG", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **more}


class PlaneError(Exception):
    """It did not start, or answered otherwise than asked for; the text has its last words."""


@dataclass(slots=True)
class Answer:
    status: int
    body: Any
    """Decoded JSON, or text."""


class Plane:
    """`treeplane up REPOSITORY --data-dir DATA …` on a free port. start() and stop() may alternate."""

    def __init__(self, repository: Path | str, data: Path, *arguments: str) -> None:
        self.repository = repository
        self.data = data
        self.arguments = arguments
        self.command = COMMAND
        self.port = free_ports(1)[0]
        self._process: Process | None = None
        self._log_start = 0

    # -- life ---------------------------------------------------------------------------------------------------

    def words(self) -> list[str]:
        """The command line."""
        listen = f"127.0.0.1:{self.port}"
        command = [str(self.command), "up", str(self.repository), "--data-dir", str(self.data), "--listen", listen]
        return [*command, *self.arguments]

    def start(self, seconds: float = READY_SECONDS) -> None:
        """Start and return when it serves and has printed what to type."""
        self.data.mkdir(parents=True, exist_ok=True)
        folder = self.data.parent
        log = folder / "treeplane.log"
        self._log_start = log.stat().st_size if log.exists() else 0
        deadline = time.monotonic() + seconds
        self._process = Process(self.words(), folder, environment())
        while not self._serves():
            if self._process.ended():
                raise PlaneError(f"`treeplane up` ended: {self.output()[-2000:]}")
            if time.monotonic() > deadline:
                said = self.output()[-2000:]
                self.stop()
                raise PlaneError(f"`treeplane up` was not ready after {seconds:.0f} s: {said}")
            time.sleep(0.02)

    def stop(self, number: signal.Signals = signal.SIGINT, seconds: float = READY_SECONDS) -> int | None:
        """Stop as Ctrl-C does, which reaches every process at once; SIGKILL for a crash of the first one alone.

        The exit code, negative for a signal; None if it did not run.
        """
        process, self._process = self._process, None
        if process is None:
            return None
        if number == signal.SIGINT and not process.ended():
            os.killpg(process.pid, signal.SIGINT)
            number = signal.SIGCONT  # nothing more than to wait
        return process.end(number, seconds)

    def __enter__(self) -> Plane:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def output(self) -> str:
        """What this run of it has printed so far."""
        log = self.data.parent / "treeplane.log"
        return log.read_bytes()[self._log_start :].decode(errors="replace") if log.exists() else ""

    def _serves(self) -> bool:
        said = self.output()
        if "in a second terminal:" not in said or not said.endswith("\n"):
            return False
        try:
            return self.request("GET", "/readyz").status == 200
        except (OSError, http.client.HTTPException):
            return False

    # -- the API --------------------------------------------------------------------------------------------------

    @property
    def kubeconfig(self) -> Path:
        return self.data / "admin.kubeconfig"

    def connection(self, seconds: float | None = 30) -> Connection:
        return Connection(Credentials.read(self.kubeconfig), seconds)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        """One request as shard-admin, from whom nothing is hidden; the path begins at the server's root."""
        connection = self.connection()
        try:
            return connection.request(method, path, body, content_type)
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """The decoded answer to a GET. Raises PlaneError unless it is 200."""
        answer = self.request("GET", path)
        if answer.status != 200:
            raise PlaneError(f"GET {path}: {answer.status} {answer.body}")
        return answer.body

    def workspaces(self) -> dict[str, str]:
        """Path → logical cluster name of every workspace that is served."""
        found = self.get("/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters")["items"]
        marks = [item["metadata"]["annotations"] for item in found]
        return {mark["kcp.io/path"]: mark["kcp.io/cluster"] for mark in marks}

    def objects(self, workspace: str) -> dict[str, dict[str, Any]]:
        """Everything that a workspace holds and lists, by `resource/namespace/name` (or `resource/name`), but Events,
        which tell what happened to it meanwhile."""
        connection, base, out = self.connection(), f"/clusters/{workspace}", {}

        def get(path: str) -> Any:
            answer = connection.request("GET", base + path)
            if answer.status != 200:
                raise PlaneError(f"GET {base}{path}: {answer.status} {answer.body}")
            return answer.body

        try:
            groups = [group["preferredVersion"]["groupVersion"] for group in get("/apis")["groups"]]
            for prefix in ("/api/v1", *(f"/apis/{group}" for group in groups)):
                for kind in get(prefix)["resources"]:
                    if "list" in kind["verbs"] and kind["name"] != "events":
                        for item in get(f"{prefix}/{kind['name']}")["items"]:
                            metadata = item["metadata"]
                            names = (kind["name"], metadata.get("namespace", ""), metadata["name"])
                            out["/".join(filter(None, names))] = item
        finally:
            connection.close()
        return out

    def everything(self) -> dict[str, dict[str, Any]]:
        """`objects` of every workspace, with the workspace's path in front."""
        return {f"{path}/{key}": item for path in self.workspaces() for key, item in self.objects(path).items()}

    def kubectl(self, *arguments: str, workspace: str = "", token: str = "", check: bool = True) -> str:
        """Run kubectl as the administrator or with a token, in a workspace if one is named; its standard output.

        As after the `export` line that is printed: plugins are found, and what they change stays in the kubeconfig.
        """
        command = [kubectl_program(), *arguments]
        if workspace:
            command += ["--server", f"{Credentials.read(self.kubeconfig).url}/clusters/{workspace}"]
        if token:
            command += ["--kubeconfig", os.devnull, "--certificate-authority", str(self.data / "keys" / "ca.crt")]
            command += ["--token", token]
        path = f"{self.command.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        variables = environment(KUBECONFIG=str(self.kubeconfig), PATH=path)
        result = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if check and result.returncode != 0:
            raise PlaneError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    # -- git ------------------------------------------------------------------------------------------------------

    def clone_words(self) -> list[str]:
        """The line to clone with, as printed."""
        for line in self.output().splitlines():
            if line.strip().startswith("git clone "):
                return shlex.split(line)
        return []

    def clone(self, folder: Path) -> Clone:
        """Clone with the printed line; its last word, the folder, is replaced."""
        words = self.clone_words()
        if not words:
            raise PlaneError(f"no line to clone with was printed: {self.output()[-2000:]}")
        return clone(words, folder)

    # -- what it costs --------------------------------------------------------------------------------------------

    def pids(self) -> list[int]:
        """It and all its descendants. Any but the first may have ended by the time that somebody looks at it."""
        if self._process is None:
            return []
        found = [self._process.pid]
        for pid in found:
            with suppress(OSError):  # it has ended since
                for task in Path(f"/proc/{pid}/task").glob("*/children"):
                    found += [int(child) for child in _read(task).split()]
        return found

    @contextmanager
    def still(self, running: str = "") -> Iterator[list[int]]:
        """Have every process whose command line has that word stand still, and go on in the end; their pids.

        Whoever stands still starts nothing more, so that looking again until nobody new is found leaves out none.
        """
        stopped: list[int] = []
        try:
            while new := [pid for pid in self.pids() if pid not in stopped and running in _read(_cmdline(pid))]:
                stopped += new
                for pid in new:
                    signalled(pid, signal.SIGSTOP)
                while any(_runs(pid) for pid in new):  # it may be about to start one
                    time.sleep(0.001)
            yield stopped
        finally:
            for pid in stopped:
                signalled(pid, signal.SIGCONT)

    def killed(self) -> None:
        """Every process at once, as where the machine ends: none is left then. stop() is still to be called."""
        with self.still() as pids:
            for pid in pids:
                signalled(pid, signal.SIGKILL)
        deadline = time.monotonic() + READY_SECONDS
        while any(_state(pid) not in ("", "Z", "X") for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.001)


def signalled(pid: int, number: signal.Signals) -> None:
    """Send a process that may have ended since it was found, with a git that it was, that signal."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def clone(words: list[str], folder: Path) -> Clone:
    """Run a printed `git clone …` with another folder as its last word."""
    command = [*words[:-1], str(folder)]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise PlaneError(f"{shlex.join(command)}: {result.stderr.strip()}")
    return Clone(folder)


@dataclass(frozen=True, slots=True)
class Clone:
    """A work tree: a clone of what the server hosts, or any other."""

    folder: Path

    def git(self, *arguments: str, check: bool = True) -> str:
        """Standard output; PlaneError with standard error if git fails."""
        result = self._git(*arguments)
        if check and result.returncode != 0:
            raise PlaneError(f"git {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "gc.auto=0"]
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)

    def write(self, path: str, content: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the first `old` in a file, which has to be there."""
        content = (self.folder / path).read_text()
        if old not in content:
            raise PlaneError(f"{path} has no {old!r}")
        self.write(path, content.replace(old, new, 1))

    def commit(self, message: str) -> str:
        """Commit everything in the work tree; the commit's id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD").strip()

    def push(self, *arguments: str) -> str:
        """What the other side said."""
        result = self._git("push", "--quiet", *arguments)
        if result.returncode != 0:
            raise PlaneError(f"git push {' '.join(arguments)}: {result.stderr.strip()}")
        return "\n".join(line.removeprefix("remote: ").rstrip() for line in result.stderr.splitlines())


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a context of a kubeconfig says: the server without a workspace's path, and who asks. It is that of
    shard-admin, from whom nothing is hidden, or the current one where there is none such."""

    url: str
    host: str
    port: int
    tls: ssl.SSLContext
    headers: dict[str, str]

    @staticmethod
    def read(kubeconfig: Path) -> Credentials:
        config = yaml.safe_load(kubeconfig.read_text())
        names = [entry["name"] for entry in config["contexts"]]
        chosen = SHARD_BASE if SHARD_BASE in names else config["current-context"]
        context = _named(config["contexts"], chosen)["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        url = urlsplit(cluster["server"])
        named = any(key.startswith("certificate-authority") for key in cluster)
        ca = _content(cluster, "certificate-authority", kubeconfig) if named else None
        tls = ssl.create_default_context(cadata=ca)
        if "client-certificate" in user or "client-certificate-data" in user:
            pair = kubeconfig.parent / f".test-client-{os.getpid()}-{threading.get_ident()}.pem"
            content = _content(user, "client-certificate", kubeconfig) + _content(user, "client-key", kubeconfig)
            pair.touch(0o600)
            try:
                pair.write_text(content)
                tls.load_cert_chain(pair)
            finally:
                pair.unlink()
        headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
        return Credentials(f"{url.scheme}://{url.netloc}", url.hostname or "127.0.0.1", url.port or 443, tls, headers)


class Connection:
    """A kept-alive connection: raw HTTP, so that what is measured is the server."""

    def __init__(self, credentials: Credentials, seconds: float | None) -> None:
        self._headers = {**credentials.headers, "Accept": "application/json"}
        self._http = http.client.HTTPSConnection(
            credentials.host, credentials.port, timeout=seconds, context=credentials.tls
        )

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", *, accept: str = ""
    ) -> Answer:
        data = None if body is None else json.dumps(body)
        headers = {**self._headers, **({"Content-Type": content_type} if data else {})}
        headers |= {"Accept": accept} if accept else {}
        self._http.request(method, path, data, headers)
        response = self._http.getresponse()
        read = response.read()
        is_json = response.headers.get_content_type() == "application/json"
        return Answer(response.status, json.loads(read) if is_json else read.decode())

    def stream(self, path: str) -> http.client.HTTPResponse:
        """The open answer to a watch: read it line by line."""
        self._http.request("GET", path, headers=self._headers)
        response = self._http.getresponse()
        if response.status != 200:
            raise PlaneError(f"GET {path}: {response.status} {response.read().decode()}")
        return response

    def close(self) -> None:
        self._http.close()


@dataclass(slots=True)
class Sightings:
    """When something was first seen in a watch: token → time.monotonic(). Filled by a thread (see `follow`)."""

    times: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, token: str, at: float) -> None:
        with self._changed:
            self.times.setdefault(token, at)
            self._changed.notify_all()

    def fail(self, why: str) -> None:
        with self._changed:
            self.failure = self.failure or why
            self._changed.notify_all()

    def wait(self, token: str, seconds: float) -> float:
        """The time at which it was seen. Raises PlaneError if that does not happen in time."""
        with self._changed:
            self._changed.wait_for(lambda: token in self.times or self.failure, seconds)
            if token not in self.times:
                raise PlaneError(self.failure or f"{token} was not seen within {seconds:g} s")
            return self.times[token]


def follow(stream: Callable[[], http.client.HTTPResponse], token: Callable[[Any], str | None]) -> Sightings:
    """Read a watch in a thread; `token` names what an object of an event shows, or None."""
    seen = Sightings()
    response = stream()

    def read() -> None:
        try:
            for line in response:
                at = time.monotonic()
                event = json.loads(line)
                if event["type"] == "ERROR":
                    seen.fail(f"the watch ended: {event['object']}")
                    return
                found = token(event["object"]) if event["type"] != "BOOKMARK" else None
                if found is not None:
                    seen.note(found, at)
            seen.fail("the watch was closed")
        except (OSError, ValueError, http.client.HTTPException) as error:
            seen.fail(f"the watch broke: {error!r}")

    threading.Thread(target=read, daemon=True).start()
    return seen


def kubectl_program() -> str:
    """The kubectl on PATH, else the one built for real clusters (raises binaries.Unavailable)."""
    return shutil.which("kubectl") or binaries.find().kubectl


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def _content(section: dict[str, Any], key: str, kubeconfig: Path) -> str:
    """PEM of `key`, which stands in the kubeconfig (`key-data`) or in a file beside it."""
    if f"{key}-data" in section:
        return base64.b64decode(section[f"{key}-data"]).decode()
    return (kubeconfig.parent / str(section[key])).read_text()


def _runs(pid: int) -> bool:
    """Not where it has stopped, has ended, or waits in the kernel for a child of its that has (vfork)."""
    return _state(pid) in ("R", "S")


def _state(pid: int) -> str:
    """The letter that /proc has for it; "" where there is no such process."""
    return "".join(_read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1])


def _cmdline(pid: int) -> Path:
    return Path(f"/proc/{pid}/cmdline")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

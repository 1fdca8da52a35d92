"""A git server as tenants have one: bare repositories over HTTPS on loopback, which a test may have lie, fail, be
silent or go on for ever at each step.

It is git itself (`upload-pack`, `receive-pack`), so what it says is what servers say. `spoil` is asked before each
answer.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from apiserver.auth.pki import ensure_keys
from reconciler.repository.sourcerefs import NO_CREDENTIALS, SourceCredentials, address
from reconciler.sourcing.followed import FollowedSource

Step = Literal["refs", "ls-refs", "fetch", "refs to write", "push"]
STEPS: tuple[Step, ...] = ("refs", "ls-refs", "fetch")
WRITING: tuple[Step, ...] = ("refs to write", "push")


@dataclass(slots=True)
class GitAsked:
    """One request. `real`: what git answers. `raw`: writes bytes as they are. `ended`: set when the server closes."""

    step: Step
    repository: str
    headers: Mapping[str, str]
    body: bytes
    handler: _Handler
    ended: threading.Event

    @property
    def service(self) -> str:
        return "receive-pack" if self.step in WRITING else "upload-pack"

    @property
    def kind(self) -> str:
        return "advertisement" if self.step.startswith("refs") else "result"

    def real(self) -> bytes:
        return self.handler.git(self)

    def reply(self, data: bytes, status: int = 200, **heads: str) -> None:
        said = {name.replace("_", "-"): value for name, value in heads.items()}
        usual = {"Content-Type": f"application/x-git-{self.service}-{self.kind}", "Content-Length": str(len(data))}
        self.handler.send_response(status)
        for name, value in {**usual, **said}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def raw(self, data: bytes) -> None:
        self.handler.close_connection = True
        self.handler.wfile.write(data)


Spoil = Callable[[GitAsked], bool]
"""Whether it has answered."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        assert path.endswith("/info/refs")
        steps: dict[str, Step] = {"service=git-upload-pack": "refs", "service=git-receive-pack": "refs to write"}
        self._serve(steps[query], path.removesuffix("/info/refs"), b"")

    def do_POST(self) -> None:
        if self.server.git.unread:
            self.server.git.ended.wait()
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        path, _, service = self.path.rpartition("/")
        step: Step = "ls-refs" if b"command=ls-refs" in body else "fetch"
        self._serve("push" if service == "git-receive-pack" else step, path, body)

    def _serve(self, step: Step, path: str, body: bytes) -> None:
        git = self.server.git
        asked = GitAsked(step, path.strip("/"), dict(self.headers.items()), body, self, git.ended)
        git.asked.append(asked)
        if git.spoil(asked):
            return
        if git.password and self.headers.get("Authorization") != SourceCredentials("u", git.password).header():
            asked.reply(b"", 401, WWW_Authenticate='Basic realm="git"')
            return
        if not (git.folder / asked.repository / "HEAD").is_file():
            asked.reply(b"", 404)
            return
        asked.reply(asked.real())

    def git(self, asked: GitAsked) -> bytes:
        mode = ["--http-backend-info-refs"] if asked.kind == "advertisement" else []
        mode += ["--strict"] if asked.service == "upload-pack" else []
        version = {} if self.server.git.old else {"GIT_PROTOCOL": asked.headers.get("Git-Protocol", "")}
        found = subprocess.run(
            ["git", asked.service, "--stateless-rpc", *mode, self.server.git.folder / asked.repository],
            input=asked.body, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **version},
            check=False,
        ).stdout  # fmt: skip
        if asked.kind != "advertisement" or (version and asked.service == "upload-pack"):
            return found
        said = f"# service=git-{asked.service}\n".encode()
        return b"%04x%b0000%b" % (len(said) + 4, said, found)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, git: GitServer, context: ssl.SSLContext) -> None:
        self.git, self._context = git, context
        super().__init__(("127.0.0.1", 0), _Handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        plain, where = super().get_request()
        self.git.sockets.append(plain)
        return self._context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), where

    def handle_error(self, *_: Any) -> None:
        """Whoever asked has gone."""


@dataclass
class GitServer:
    """Serves the repositories in `folder`. `old`: only the protocol's first version. `password`: of the user `u`.
    `unread`: what is sent to it is not read."""

    folder: Path
    keys: Path
    old: bool = False
    password: str = ""
    unread: bool = False
    spoil: Spoil = lambda _: False
    asked: list[GitAsked] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    sockets: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        made = ensure_keys(self.keys)
        self.ca = made.ca.read_bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.server.certificate, made.server.key)
        self._server = _Server(self, context)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def steps(self) -> list[Step]:
        return [asked.step for asked in self.asked]

    def url(self, name: str) -> str:
        return f"https://127.0.0.1:{self.port}/{name}"

    def source(self, name: str, branch: str = "main", **more: Any) -> FollowedSource:
        """One that may be followed, though it is on this machine."""
        known = more.pop("credentials", NO_CREDENTIALS)
        credentials = SourceCredentials(known.username, known.password, known.token, known.ca or self.ca)
        return FollowedSource(address(self.url(name), branch), **{"credentials": credentials, "trusted": True, **more})

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.close()
        self._thread.join()

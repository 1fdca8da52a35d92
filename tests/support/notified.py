"""Who is notified of commits, on loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson
from support.fakeforges import Said


class Got(NamedTuple):
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.body)
        return found


@dataclass
class FakeReceiver:
    """`faults`: what is answered first. `silent`: nothing is, until the server ends."""

    got: list[Got] = field(default_factory=list)
    faults: list[Said] = field(default_factory=list)
    silent: bool = False
    url: str = ""
    over: threading.Event = field(default_factory=threading.Event)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeReceiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.fake.got.append(Got({key.lower(): value for key, value in self.headers.items()}, body))
        if self.fake.silent:
            self.fake.over.wait(30)
            return
        said = self.fake.faults.pop(0) if self.fake.faults else Said(204, b"")
        self.send_response(said.status)
        for key, value in {"Content-Length": str(len(said.body)), **said.headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(said.body)

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # who asked did not wait
            super().handle()


@contextmanager
def receiving(fake: FakeReceiver | None = None) -> Iterator[FakeReceiver]:
    fake = fake or FakeReceiver()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        server.shutdown()
        thread.join()
        server.server_close()

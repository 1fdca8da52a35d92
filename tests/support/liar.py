"""A sync target that answers what a test makes it answer, byte for byte: a real HTTPS server on loopback."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apiserver.auth.pki import Keys, ensure_keys
from reconciler.controllers.targets import Kubeconfig


@dataclass(slots=True)
class Asked:
    """One request as it came. `send` writes to whoever asked; it fails once they are gone."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    send: Callable[[bytes], object]
    ended: threading.Event = field(default_factory=threading.Event)
    """Set when the test is over: a handler that says nothing waits for it."""


Handler = Callable[[Asked], None]


def answer(asked: Asked, content: Any, status: str = "200 OK") -> None:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    asked.send(f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)


def refuse(asked: Asked, code: int, reason: str, message: str = "") -> None:
    answer(asked, {"kind": "Status", "code": code, "reason": reason, "message": message}, f"{code} {reason}")


def stream(asked: Asked, pieces: Iterator[bytes]) -> None:
    """An answer in chunks, for as long as there are pieces."""
    asked.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for piece in pieces:
        asked.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    asked.send(b"0\r\n\r\n")


def _agreed(secured: ssl.SSLSocket) -> bool:
    """Whether both sides accept each other; else the other one has read why."""
    try:
        secured.do_handshake()
    except ssl.SSLError:
        secured.shutdown(socket.SHUT_WR)
        while secured.recv(4096):
            pass
        return False
    return True


class Liar:
    """`handler` answers each request; `asked` has the request lines, in order. Trusts its own CA's client
    certificates where `mutual`."""

    def __init__(self, directory: Path, handler: Handler, *, mutual: bool = False) -> None:
        self.keys: Keys = ensure_keys(directory)
        self.handler = handler
        self.asked: list[str] = []
        self.ended = threading.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.keys.server.certificate, self.keys.server.key)
        if mutual:
            context.load_verify_locations(self.keys.ca)
            context.verify_mode = ssl.CERT_REQUIRED
        liar = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                wrapped = context.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
                with contextlib.suppress(OSError, ValueError), wrapped as s:
                    if not _agreed(s):
                        return
                    file = s.makefile("rb")
                    while liar._one(file, s.sendall):
                        pass

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Connection)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def _one(self, file: Any, send: Callable[[bytes], object]) -> bool:
        line = file.readline().decode()
        if not line:
            return False
        method, path, _ = line.split()
        headers = {}
        while (header := file.readline().decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", "0")))
        self.asked.append(f"{method} {path}")
        self.handler(Asked(method, path, headers, body, send, self.ended))
        return True

    def kubeconfig(self, *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> bytes:
        """One that is good, but for what is given."""
        ca = base64.b64encode(self.keys.ca.read_bytes()).decode()
        server = f"https://127.0.0.1:{self.port}"
        content = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "b", "user": "c"}}],
            "clusters": [
                {"name": "b", "cluster": {"server": server, "certificate-authority-data": ca, **(cluster or {})}}
            ],
            "users": [{"name": "c", "user": {"token": "s3cr3t", **(user or {})}}],
        }
        return json.dumps(content).encode()

    def trusted(self) -> Kubeconfig:
        return Kubeconfig(self.kubeconfig(), anywhere=True)

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

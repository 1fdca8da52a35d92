"""A forward proxy on loopback, as companies have one: it takes CONNECT, for whoever shows the password."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class ConnectProxy:
    """`asked`: to where. `password`: of the user `p`; "": anybody may."""

    port: int = 0
    password: str = ""
    asked: list[str] = field(default_factory=list)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: ConnectProxy


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_CONNECT(self) -> None:
        proxy = self.server.proxy
        proxy.asked.append(self.path)
        wanted = "Basic " + base64.b64encode(f"p:{proxy.password}".encode()).decode()
        if proxy.password and self.headers.get("Proxy-Authorization") != wanted:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", 'Basic realm="proxy"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pump, args=(there, self.connection), daemon=True)
            back.start()
            _pump(self.connection, there)
            back.join()
        self.close_connection = True


def _pump(here: socket.socket, there: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := here.recv(65536):
            there.sendall(data)
    with contextlib.suppress(OSError):
        there.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def connect_proxy(password: str = "") -> Iterator[ConnectProxy]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy = ConnectProxy(server.server_port, password)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
